"""The handle of one flow behind a gateway, and finding flows again: what `FlowHandle` is beside the database."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, TypeVar

from fencerow.core.client.waiting import check_wait
from fencerow.core.errors import NotReady, ResultTimeout
from fencerow.core.model.ids import parse_id
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.state import FINAL, State
from fencerow.core.verb import averb, verb
from fencerow.db.text import shown
from fencerow.flows.errors import UnknownFlowJob
from fencerow.web.gateway.flow_shapes import (
    FlowCancelled,
    FlowCountsDocument,
    FlowDocument,
    FlowJobDocument,
    FlowJobList,
    FlowList,
    FlowRevived,
    FlowSummary,
)
from fencerow.web.remote.base import RemoteBase
from fencerow.web.remote.exchange import Exchange, Remote, Reply
from fencerow.web.remote.handle import WAIT_S, RemoteHandle

T = TypeVar("T")

PAGE = 200
JOBS_PAGE = 1_000


class RemoteFlowHandle:
    """One flow, by its id. `replay`: it was submitted before.

    Each method has an async twin with an `a` in front, and raises what the methods of `FlowHandle` raise, besides:
        Unavailable, OutcomeUnknown: the gateway did not answer within the client's patience.
        NotAuthenticated, NotAllowed: the token is not good for this.
    """

    def __init__(self, client: RemoteBase, flow_id: str, *, replay: bool = False) -> None:
        self._client = client
        self.id = parse_id(flow_id)
        self.replay = replay

    def __repr__(self) -> str:
        return f"<RemoteFlowHandle {self.id}{' (replay)' if self.replay else ''}>"

    @verb
    def refresh(self) -> Remote[FlowDocument]:
        """The flow as it stands now.

        Raises:
            FlowNotFound: it is not there, or not for this token.
        """
        return (yield from self._looked())

    arefresh = averb(refresh)

    @verb
    def counts(self) -> Remote[FlowCountsDocument]:
        """How many of its jobs stand in which state, while it runs and afterwards."""
        return (yield from self._looked()).counts

    acounts = averb(counts)

    @verb
    def jobs(self) -> Remote[list[FlowJobDocument]]:
        """Its jobs, each behind those it waits for, with how they stand and for whom they wait."""
        found: list[FlowJobDocument] = []
        cursor: str | None = ""
        while cursor is not None:
            page = yield from self._page(cursor)
            found += page.jobs
            cursor = page.next
        return found

    ajobs = averb(jobs)

    @verb
    def job_named(self, name: str) -> Remote[RemoteHandle]:
        """The handle of one of its jobs, by its name in the flow.

        Raises:
            UnknownFlowJob: it has no job of that name. FlowNotFound: it is not there.
        """
        cursor: str | None = ""
        while cursor is not None:
            page = yield from self._page(cursor)
            for each in page.jobs:
                if each.name == name:
                    return RemoteHandle(self._client, each.id)
            cursor = page.next
        raise UnknownFlowJob(
            f"flow {self.id} has no job {shown(name)}",
            "a job of a flow is named as it was added",
            "`jobs()` has the names",
        )

    ajob_named = averb(job_named)

    @verb
    def wait_ended(self, timeout_s: Seconds | None = None) -> Remote[FlowCountsDocument]:
        """Wait until all its jobs have ended, in whatever way; returns how many ended how.

        Raises:
            ResultTimeout: they have not within `timeout_s` seconds. The flow goes on; ask again.
        """
        waits = _Slices(timeout_s)
        while (found := (yield from self._looked(waits.next_s()))).state == "running":
            if waits.is_over:
                raise waits.timeout(f"flow {self.id} had not ended")
        return found.counts

    await_ended = averb(wait_ended)

    @verb
    def result(self, *, wait_for: str | None = None, timeout_s: Seconds | None = 0.0) -> Remote[Any]:
        """The newest result of its stages (jobs that were added with `stage=True`), as JSON data.

        `wait_for`: first wait until the stage of that name has ended, `timeout_s` seconds at most. If it fails, or does
        not end in time, the result of the stage before it is returned: `jobs()` says how each stands.

        Raises:
            NotReady: no stage has a result yet. NoFlowResult: none will have one.
            UnknownFlowJob: it has no job of that name. FlowNotFound: it is not there, or not for this token.
        """
        waits = _Slices(timeout_s)
        query = {} if wait_for is None else {"wait_for": wait_for}
        while True:
            try:
                reply = yield from self._asked("GET", "/result", query=query, wait_s=waits.next_s())
            except NotReady:
                if waits.is_over:
                    raise
                continue
            if waits.is_over or wait_for is None or State(reply.headers["fencerow-stage"]) in FINAL:
                return reply.decoded(object)

    aresult = averb(result)

    @verb
    def cancel(self) -> Remote[FlowCancelled]:
        """Cancel all its jobs that have not ended: at once those that nobody runs, by request those that run.

        Raises:
            FlowEnded: all have ended. FlowNotFound: it is not there, or not for this token.
        """
        return (yield from self._asked("DELETE")).decoded(FlowCancelled)

    acancel = averb(cancel)

    @verb
    def revive(self) -> Remote[FlowRevived]:
        """Run all its jobs again that failed or were cancelled; each waits again for those it had waited for.

        Raises:
            FlowEnded: none failed or was cancelled, or one of those is gone. Nothing was changed.
            FlowNotFound: it is not there, or not for this token.
        """
        return (yield from self._asked("POST", "/revive")).decoded(FlowRevived)

    arevive = averb(revive)

    def _looked(self, wait_s: float = 0.0) -> Remote[FlowDocument]:
        return (yield from self._asked("GET", wait_s=wait_s)).decoded(FlowDocument)

    def _page(self, cursor: str) -> Remote[FlowJobList]:
        query = {"limit": str(JOBS_PAGE)} | ({"cursor": cursor} if cursor else {})
        return (yield from self._asked("GET", "/jobs", query=query)).decoded(FlowJobList)

    def _asked(
        self, method: str, below: str = "", *, query: Mapping[str, str] | None = None, wait_s: float = 0.0
    ) -> Remote[Reply]:
        asked = dict(query or {}) | ({"wait": f"{wait_s:.3f}"} if wait_s > 0 else {})
        path = f"/v1/flows/{self.id}{below}"
        return (yield from self._client.asking(Exchange(method, path, query=asked, wait_s=wait_s)))

    def _run(self, procedure: Remote[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Remote[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)


class RemoteFlows:
    """Finds flows behind a gateway again. Each method has an async twin with an `a` in front."""

    def __init__(self, client: RemoteBase) -> None:
        self._client = client

    def handle(self, flow_id: str) -> RemoteFlowHandle:
        """A handle for the flow of this id. Asks nobody yet.

        Raises:
            InvalidInput: it is no id.
        """
        return RemoteFlowHandle(self._client, flow_id)

    @verb
    def known(
        self, *, live: bool = False, name: str | None = None, limit: int = 50
    ) -> Remote[list[FlowSummary]]:
        """The newest flows. `live`: only those that have not ended; `name`: only those of this name.

        Raises:
            NotAllowed: the token is good for some queues only.
        """
        wanted = {} if name is None else {"name": name}
        wanted |= {"live": "true"} if live else {}
        found: list[FlowSummary] = []
        while True:
            query = {**wanted, "limit": str(min(PAGE, limit - len(found)))}
            reply: Reply = yield from self._client.asking(Exchange("GET", "/v1/flows", query=query))
            page = reply.decoded(FlowList)
            found += page.flows
            if page.next is None or len(found) >= limit:
                return found
            wanted["cursor"] = page.next

    aknown = averb(known)

    def _run(self, procedure: Remote[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Remote[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)


class _Slices:
    """Somebody who waits by one request after the other."""

    def __init__(self, timeout_s: Seconds | None) -> None:
        self._given_s = check_wait(timeout_s)
        self._until = math.inf if self._given_s is None else time.monotonic() + self._given_s

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._until

    def next_s(self) -> float:
        """For how long the next request waits."""
        return max(0.0, min(WAIT_S, self._until - time.monotonic()))

    def timeout(self, what: str) -> ResultTimeout:
        return ResultTimeout(
            f"{what} within {self._given_s:g} s", "the gateway says so", "the flow goes on; ask again"
        )
