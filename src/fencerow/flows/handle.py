"""The handle of one flow: how it stands, its jobs, its result; cancel it, run it again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fencerow.core.answering import answer
from fencerow.core.client.base import ClientBase, Verbs
from fencerow.core.client.handle import Handle
from fencerow.core.client.waiting import check_wait
from fencerow.core.errors import NotReady, ResultTimeout
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.state import FINAL
from fencerow.core.verb import averb, verb
from fencerow.db.run import Pause, Procedure, ask
from fencerow.flows.errors import NoFlowResult
from fencerow.flows.flow_job import FlowJob
from fencerow.flows.looking import (
    FlowCounts,
    FlowJobRecord,
    FlowRecord,
    count_flow_jobs,
    read_flow_jobs,
    read_newest_stage,
)
from fencerow.flows.reading import reading_flow, reading_flow_job

if TYPE_CHECKING:
    from fencerow.flows.moving import FlowCancelAnswer, FlowReviveAnswer

R = TypeVar("R")

PAUSE_S = 0.05  # between two looks of who waits, and twice as long each time
PAUSE_S_MAX = 1.0
JOBS_MAX = 20_000


@answer
class FlowHandle(Verbs):
    """One flow, by its id. Each method has an async twin with an `a` in front. `replay`: it was submitted before."""

    def __init__(self, client: ClientBase, flow_id: str, *, replay: bool = False) -> None:
        super().__init__(client)
        self.id = flow_id
        self.replay = replay

    def __repr__(self) -> str:
        return f"<FlowHandle {self.id}{' (replay)' if self.replay else ''}>"

    @verb
    def refresh(self) -> Procedure[FlowRecord]:
        """The flow as it stands now.

        Raises:
            FlowNotFound: it is not there.
        """
        return (yield from reading_flow(self.id))

    arefresh = averb(refresh)

    @verb
    def counts(self) -> Procedure[FlowCounts]:
        """How many of its jobs stand in which state, while it runs and afterwards.

        Raises:
            FlowNotFound: it is not there.
        """
        yield from reading_flow(self.id)
        return (yield from ask(count_flow_jobs(self.id)))

    acounts = averb(counts)

    @verb
    def jobs(self) -> Procedure[list[FlowJobRecord]]:
        """Its jobs, each behind those it waits for, with how they stand and for whom they wait."""
        yield from reading_flow(self.id)
        return (yield from ask(read_flow_jobs(self.id, limit=JOBS_MAX)))

    ajobs = averb(jobs)

    @verb
    def job(self, which: FlowJob[R]) -> Procedure[Handle[R]]:
        """The handle of one of its jobs, by what `Flow.add` returned.

        Raises:
            UnknownFlowJob: it has no job of that name. FlowNotFound: it is not there.
        """
        found = yield from reading_flow_job(self.id, which.name)
        return Handle(self._client, found.id, which.call.recipe.decode)

    ajob = averb(job)

    @verb
    def job_named(self, name: str) -> Procedure[Handle[Any]]:
        """The handle of one of its jobs, by its name in the flow. Its result comes as plain JSON data.

        Raises:
            UnknownFlowJob: it has no job of that name. FlowNotFound: it is not there.
        """
        found = yield from reading_flow_job(self.id, name)
        return Handle(self._client, found.id, msgspec.json.decode)

    ajob_named = averb(job_named)

    @verb
    def wait_ended(self, timeout_s: Seconds | None = None) -> Procedure[FlowCounts]:
        """Wait until all its jobs have ended, in whatever way; returns how many ended how.

        Raises:
            ResultTimeout: they have not within `timeout_s` seconds. The flow goes on; ask again.
            FlowNotFound: it is not there.
        """
        waits = _Waits(timeout_s)
        while (yield from reading_flow(self.id)).state == "running":
            if waits.is_over:
                counts = yield from ask(count_flow_jobs(self.id))
                raise waits.timeout(
                    f"flow {self.id} had not ended",
                    f"{counts.total - counts.ended} of {counts.total} jobs have not ended",
                )
            yield waits.pause()
        return (yield from ask(count_flow_jobs(self.id)))

    await_ended = averb(wait_ended)

    @verb
    def cancel(self, *, reason: str | None = None) -> Procedure[FlowCancelAnswer]:
        """Cancel all its jobs that have not ended: at once those that nobody runs, by request those that run.

        It goes in portions, those behind first, and from the first on no job of it is woken any more. Ask again if it
        was interrupted.

        Raises:
            FlowEnded: all have ended. FlowNotFound: it is not there.
        """
        from fencerow.flows.moving import cancelling_flow  # who cancels none never loads it

        return (yield from cancelling_flow(self.id, self._client.actor, reason))

    acancel = averb(cancel)

    @verb
    def revive(self, *, reason: str | None = None) -> Procedure[FlowReviveAnswer]:
        """Run all its jobs again that failed or were cancelled; each waits again for those it had waited for.

        What has succeeded is not repeated, and callbacks that were made are not made again. It goes in portions of 500,
        those in front first, each of which is one transaction. One that was interrupted leaves nobody waiting for ever:
        what is revived runs, the rest stays as it was. Ask again then, or if it says that some were left.

        Raises:
            FlowEnded: none failed or was cancelled, or one of those is gone. Nothing was changed.
            RevivedTooSoon: the compensation of one has not ended. Nothing was changed; wait for its end, or cancel it.
            Busy: somebody has locked one of the first portion. Nothing was changed; ask again. Of a later portion it
                is no error: these and those behind them are `left`.
            FlowNotFound: it is not there.
        """
        from fencerow.flows.moving import reviving_flow

        return (yield from reviving_flow(self.id, self._client.actor, reason))

    arevive = averb(revive)

    def result(self, *, wait_for: str | None = None, timeout_s: Seconds | None = 0.0) -> Any:
        """The newest result of its stages (jobs that were added with `stage=True`), as plain JSON data.

        `wait_for`: first wait until the stage of that name has ended, `timeout_s` seconds at most. If it fails, or does
        not end in time, the result of the stage before it is returned: `jobs()` says how each stands.

        Raises:
            NotReady: no stage has a result yet. NoFlowResult: none will have one.
            UnknownFlowJob: it has no job of that name. FlowNotFound: it is not there.
        """
        found = self._run(_newest(self.id, wait_for, timeout_s))
        return msgspec.json.decode(
            self._client.plain_result(found.id, (found.result_text or "null").encode())
        )

    async def aresult(self, *, wait_for: str | None = None, timeout_s: Seconds | None = 0.0) -> Any:
        """`result` for async code."""
        found = await self._arun(_newest(self.id, wait_for, timeout_s))
        stored = (found.result_text or "null").encode()
        return msgspec.json.decode(await self._client.aplain_result(found.id, stored))


class _Waits:
    """Somebody who waits: how long yet, and how long until the next look."""

    def __init__(self, timeout_s: Seconds | None) -> None:
        self._given_s = check_wait(timeout_s)
        self._until = None if self._given_s is None else time.monotonic() + self._given_s
        self._pause_s = PAUSE_S

    @property
    def is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def pause(self) -> Pause:
        left_s = self._pause_s if self._until is None else self._until - time.monotonic()
        found = Pause(max(0.0, min(self._pause_s, left_s)))
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
        return found

    def timeout(self, what: str, why: str) -> ResultTimeout:
        return ResultTimeout(f"{what} within {self._given_s:g} s", why, "the flow goes on; ask again")


def _newest(flow_id: str, wait_for: str | None, timeout_s: Seconds | None) -> Procedure[FlowJobRecord]:
    waits = _Waits(timeout_s)
    if wait_for is not None:
        while (yield from reading_flow_job(flow_id, wait_for)).state not in FINAL and not waits.is_over:
            yield waits.pause()
    while True:
        flow = yield from reading_flow(flow_id)
        found = yield from ask(read_newest_stage(flow_id))
        if found is not None:
            return found
        if flow.state != "running":
            raise NoFlowResult(
                f"flow {flow_id} {flow.state} and has no result",
                "the newest result of its stages is its result, and no stage has one",
                "add a job with stage=True, or ask for a job: flow.job(...)",
            )
        if waits.is_over:
            raise NotReady(
                f"flow {flow_id} has no result yet", "no stage has succeeded", "wait for it, or ask later"
            )
        yield waits.pause()
