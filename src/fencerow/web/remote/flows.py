"""A flow while it is put together, to be stored through a gateway: what `Flow` is beside the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Unpack

from fencerow.core.model.ids import new_id
from fencerow.core.verb import averb, verb
from fencerow.web.gateway.flow_shapes import FlowSubmitted
from fencerow.web.remote.base import RemoteBase
from fencerow.web.remote.exchange import Exchange, Remote, Reply
from fencerow.web.remote.flow_handle import RemoteFlowHandle
from fencerow.web.remote.options import RemoteOptions, said
from fencerow.web.remote.steps import quoted

T = TypeVar("T")


class RemoteFlow:
    """Jobs that are submitted together, of which some wait for others. Made by `client.flow(name)`; add jobs, submit.

    The gateway checks it as a whole when it is submitted. Threads must not add to one at the same time.
    """

    def __init__(self, client: RemoteBase, name: str, *, key: str | None = None) -> None:
        self._client = client
        self.name = name
        self.key = key
        # Made once, so that a submit whose answer was lost can be repeated.
        self._own_key = new_id()
        self._jobs: list[dict[str, Any]] = []
        self._callbacks: dict[str, list[dict[str, Any]]] = {}

    def __repr__(self) -> str:
        return f"<RemoteFlow {self.name!r} of {len(self._jobs)} jobs>"

    def add(
        self,
        name: str,
        job: str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        needs: Iterable[str] = (),
        after: Iterable[str] = (),
        stage: bool = False,
        **options: Unpack[RemoteOptions],
    ) -> str:
        """Add the job `job` under a name of its own in this flow, which is returned; it starts once all it waits for
        has ended.

        `needs`: these must succeed. `after`: these may end in any way. Both take names, which may be added later.
        `stage`: its result is that of the flow, until a later stage has one.
        """
        edges = {"needs": list(needs), "after": list(after), "stage": stage}
        self._jobs.append({"name": name, **edges, **_submit(job, args, options)})
        return name

    def on_done(
        self, job: str, args: Mapping[str, Any] | None = None, /, **options: Unpack[RemoteOptions]
    ) -> None:
        """Make this job once all of the flow have ended, however they did."""
        self._callbacks.setdefault("on_done", []).append(_submit(job, args, options))

    def on_succeeded(
        self, job: str, args: Mapping[str, Any] | None = None, /, **options: Unpack[RemoteOptions]
    ) -> None:
        """Make this job once all of the flow have succeeded."""
        self._callbacks.setdefault("on_succeeded", []).append(_submit(job, args, options))

    def on_failed(
        self, job: str, args: Mapping[str, Any] | None = None, /, **options: Unpack[RemoteOptions]
    ) -> None:
        """Make this job once, as soon as any of the flow has failed. A job that is cancelled has not failed."""
        self._callbacks.setdefault("on_failed", []).append(_submit(job, args, options))

    @verb
    def submit(self) -> Remote[RemoteFlowHandle]:
        """Store the flow, all of it or nothing. It may be repeated: that stores no second one.

        Raises:
            FlowCycle, UnknownFlowJob, FlowNameTaken, FlowTooLarge, InvalidFlow: it cannot be run. Nothing is stored.
            UnknownJob, InvalidArguments, InvalidInput: a job of it cannot be stored. Nothing is stored.
            FlowConflict: another flow of this name has the key.
            Unavailable, OutcomeUnknown: the gateway did not answer within the client's patience.
            NotAuthenticated, NotAllowed: the token is not good for this.
        """
        key = self._own_key if self.key is None else self.key
        exchange = Exchange(
            "POST",
            "/v1/flows",
            document={"name": self.name, "jobs": self._jobs, **self._callbacks},
            headers={"idempotency-key": f'"{quoted(key)}"'},
        )
        reply: Reply = yield from self._client.asking(exchange)
        replay = reply.headers.get("idempotent-replayed") == "true"
        return RemoteFlowHandle(self._client, reply.decoded(FlowSubmitted).id, replay=replay)

    asubmit = averb(submit)

    def _run(self, procedure: Remote[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Remote[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)


def _submit(job: str, args: Mapping[str, Any] | None, options: RemoteOptions) -> dict[str, Any]:
    return {"job": job, "args": dict(args or {}), **said(options)}
