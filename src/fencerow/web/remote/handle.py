"""The handle of one job behind a gateway: what `Handle` is beside the database."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import msgspec

from fencerow.core.client.refs import CancelAnswer
from fencerow.core.client.waiting import check_wait
from fencerow.core.errors import NotReady, ResultTimeout
from fencerow.core.model.ids import parse_id
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.state import State
from fencerow.core.verb import averb, verb
from fencerow.web.gateway.shapes import JobDocument
from fencerow.web.remote.base import RemoteBase
from fencerow.web.remote.exchange import Exchange, Remote, Reply

T = TypeVar("T")

WAIT_S = 30.0  # of one request: shorter than what proxies cut off

_now: Callable[[], float] = time.monotonic


class CancelReply(msgspec.Struct, frozen=True):
    """What a cancel is answered with."""

    answer: CancelAnswer


class RemoteHandle:
    """One job, by its id. `replay` is true if an earlier submit with the same key, unique key or id had made it.

    Each method has an async twin with an `a` in front, and raises what the methods of `Handle` raise, besides:
        Unavailable, OutcomeUnknown: the gateway did not answer within the client's patience.
        NotAuthenticated, NotAllowed: the token is not good for this.
    """

    def __init__(self, client: RemoteBase, job_id: str, *, replay: bool = False) -> None:
        self._client = client
        self.id = parse_id(job_id)
        self.replay = replay

    def __repr__(self) -> str:
        return f"<RemoteHandle {self.id}{' (replay)' if self.replay else ''}>"

    @property
    def answer(self) -> Literal["inserted", "existing"]:
        """Whether the submit stored this job or found it."""
        return "existing" if self.replay else "inserted"

    @verb
    def result(self, timeout_s: Seconds | None = None) -> Remote[Any]:
        """Wait for the job's end and return what its handler returned, as JSON data.

        Raises:
            JobFailed, JobCancelled: it ended so.
            ResultTimeout: it has not ended within `timeout_s` seconds. It goes on; ask again.
            JobNotFound: there is no such job, or not for this token.
        """
        wanted_s = check_wait(timeout_s)
        until = math.inf if wanted_s is None else _now() + wanted_s
        while True:
            wait_s = max(0.0, min(WAIT_S, until - _now()))
            try:
                reply: Reply = yield from self._asked("GET", "/result", wait_s=wait_s)
                return reply.decoded(object)
            except NotReady as error:
                if _now() >= until:
                    raise _late(self.id, wanted_s, error) from None

    aresult = averb(result)

    @verb
    def refresh(self) -> Remote[JobDocument]:
        """The job as it stands now.

        Raises:
            JobNotFound: there is no such job, or not for this token.
        """
        reply: Reply = yield from self._asked("GET")
        return reply.decoded(JobDocument)

    arefresh = averb(refresh)

    @verb
    def status(self) -> Remote[State]:
        """The state the job is in now.

        Raises:
            JobNotFound: there is no such job, or not for this token.
        """
        reply: Reply = yield from self._asked("GET")
        return State(reply.decoded(JobDocument).state)

    astatus = averb(status)

    @verb
    def cancel(self, *, only_queued: bool = False) -> Remote[CancelAnswer]:
        """Cancel the job: at once if no worker runs it, else by a request to its worker.

        Raises:
            IllegalMove: it has ended already, or it runs and `only_queued` was given. `state` says which.
            JobNotFound: there is no such job, or not for this token.
        """
        query = {"only": "queued"} if only_queued else {}
        reply: Reply = yield from self._asked("DELETE", query=query)
        return reply.decoded(CancelReply).answer

    acancel = averb(cancel)

    @verb
    def revive(self) -> Remote[None]:
        """Queue the finished job again.

        Raises:
            IllegalMove: it has not ended. KeyConflict: another job has its key by now.
            JobNotFound: there is no such job, or not for this token.
        """
        yield from self._asked("POST", "/revive")

    arevive = averb(revive)

    @verb
    def change(
        self,
        *,
        run_at: datetime | None = None,
        delay_s: Seconds | None = None,
        priority: int | None = None,
        queue: str | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> Remote[None]:
        """Change the job while nobody runs it; what is not given stays.

        Raises:
            IllegalMove: a worker runs it, or it has ended. `state` says which.
            InvalidInput: nothing is given, or a value cannot be used.
            JobNotFound: there is no such job, or not for this token.
        """
        given = {"run_at": run_at, "delay_s": delay_s, "priority": priority, "queue": queue, "args": args}
        wanted = {name: value for name, value in given.items() if value is not None}
        yield from self._asked("PATCH", document=wanted)

    achange = averb(change)

    @verb
    def run_now(self) -> Remote[None]:
        """Make the job due at once that would be due later.

        Raises:
            IllegalMove: a worker runs it, or it has ended. `state` says which.
            JobNotFound: there is no such job, or not for this token.
        """
        yield from self._asked("POST", "/run-now")

    arun_now = averb(run_now)

    def _asked(
        self,
        method: str,
        below: str = "",
        *,
        query: Mapping[str, str] | None = None,
        document: object = None,
        wait_s: float = 0.0,
    ) -> Remote[Reply]:
        asked = dict(query or {}) | ({"wait": f"{wait_s:.3f}"} if wait_s > 0 else {})
        path = f"/v1/jobs/{quote(self.id)}{below}"
        return (
            yield from self._client.asking(
                Exchange(method, path, query=asked, document=document, wait_s=wait_s)
            )
        )

    def _run(self, procedure: Remote[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Remote[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)


def _late(job_id: str, wanted_s: float | None, error: NotReady) -> ResultTimeout:
    if not wanted_s:
        return error
    return ResultTimeout(
        f"job {job_id} had not ended within {wanted_s:g} s",
        "the gateway says so",
        "the job goes on; ask again",
    )
