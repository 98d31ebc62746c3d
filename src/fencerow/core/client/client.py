"""`JobsClient`: everything one can do with jobs, sync and async, around one engine. Users meet it as `Client`.

Each method runs one procedure (see `db/run.py`), in a thread or in an event loop; the twin with an `a` in front
does the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from fencerow.core.client.desk import Desk
from fencerow.core.client.finding import Plain, chosen_by, listing
from fencerow.core.client.group import Group
from fencerow.core.client.handle import Handle
from fencerow.core.client.moving import (
    cancelling,
    deleting,
    logs_reading,
    reviving,
    timeline_reading,
)
from fencerow.core.client.refs import CancelAnswer, Ref, reading, resolving
from fencerow.core.client.submitting import Submission, due_lanes, local_now_us, storing
from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Procedure
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import Happening, JobRecord, LogLine
from fencerow.core.model.state import State
from fencerow.core.store.submit import Submitted
from fencerow.core.telemetry import Event, Telemetry

PATIENCE_S = 5.0
FLUSH_S = 1.0


class JobsClient(Desk):
    """Submits, looks at, waits for and moves jobs.

    A job is named by its id, or by `Key(scope, key)`. One client serves threads and event loops together.
    `ready` is called before the database is first used. Close it when done: it may hold a thread for waiting.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        actor: str | None = None,
        telemetry: Telemetry | None = None,
        ready: Callable[[], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__(engine, actor=actor, ready=ready)
        self.telemetry = telemetry or Telemetry()
        self.patience_s = patience_s
        self._groups: WeakKeyDictionary[asyncio.AbstractEventLoop, Group] = WeakKeyDictionary()

    # --- submitting --------------------------------------------------------------------------------

    def submit(self, submissions: Sequence[Submission], *, connection: Any = None) -> list[Submitted]:
        """Store jobs in one transaction, all or none; with `connection` in the caller's own.

        Raises:
            KeyConflict: a key belongs to another payload. Nothing is stored.
            OutcomeUnknown: the answer was lost and could not be had within `patience_s`; `job_ids` are
                the ids to ask for or to submit again.
        """
        now_us = local_now_us()
        answers = self.run(self._storing(submissions, connection), connection)
        self._tell(submissions, answers, now_us, wake=connection is None)
        return answers

    async def asubmit(self, submissions: Sequence[Submission], *, connection: Any = None) -> list[Submitted]:
        """`submit` for async code. A plain single job may share its insert with those submitted meanwhile."""
        if connection is None and len(submissions) == 1 and submissions[0].is_plain:
            await self._group().submit(submissions[0])
            return [Submitted(submissions[0].job.id)]
        return await self._astore(submissions, connection)

    # --- looking -----------------------------------------------------------------------------------

    def handle(self, job_id: str) -> Handle[Any]:
        """A handle of a job known by its id; its result comes as plain JSON data. Asks nothing yet.

        Raises:
            InvalidInput: it is no id.
        """
        return Handle(self, parse_id(job_id), msgspec.json.decode, _existed=False)

    def get(self, ref: Ref) -> JobRecord:
        """The job as it stands, live or finished.

        Raises:
            JobGone: it was removed, but its key remembers it.
            JobNotFound: it is nowhere.
        """
        return self.run(reading(ref))

    async def aget(self, ref: Ref) -> JobRecord:
        """`get` for async code."""
        return await self.arun(reading(ref))

    def list_jobs(
        self,
        *,
        queue: str | None = None,
        name: str | None = None,
        states: Sequence[State | str] | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Plain] | None = None,
        scope: str | None = None,
        key: str | None = None,
        before_id: str | None = None,
        limit: int = 50,
    ) -> list[JobRecord]:
        """A page of jobs that match, the newest first, without their payloads.

        `states`: members of `State` or their names. `tags`: all of which a job must carry. `metadata`: top-level
        fields and their plain values. Pass the id of the last job as `before_id` to get the next page.

        Raises:
            InvalidInput: there is no such state; a tag or field cannot belong to any job; a value is no plain one; the
                limit is not from 1 to 10,000; `before_id` is no id.
        """
        chosen = chosen_by(
            queue=queue,
            name=name,
            states=states,
            tags=tags,
            metadata=metadata,
            scope=scope,
            key=key,
            before_id=before_id,
        )
        return self.run(listing(chosen, limit))

    async def alist_jobs(
        self,
        *,
        queue: str | None = None,
        name: str | None = None,
        states: Sequence[State | str] | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Plain] | None = None,
        scope: str | None = None,
        key: str | None = None,
        before_id: str | None = None,
        limit: int = 50,
    ) -> list[JobRecord]:
        """`list_jobs` for async code."""
        chosen = chosen_by(
            queue=queue,
            name=name,
            states=states,
            tags=tags,
            metadata=metadata,
            scope=scope,
            key=key,
            before_id=before_id,
        )
        return await self.arun(listing(chosen, limit))

    def timeline(self, ref: Ref) -> list[Happening]:
        """What happened to a job, in order: who submitted it, its failures, who cancelled it.

        Raises:
            JobNotFound: it is not there.
        """
        return self.run(timeline_reading(ref))

    async def atimeline(self, ref: Ref) -> list[Happening]:
        """`timeline` for async code."""
        return await self.arun(timeline_reading(ref))

    def logs(self, ref: Ref) -> list[LogLine]:
        """The lines kept with a job, in order; none for a job that is not there."""
        return self.run(logs_reading(ref))

    async def alogs(self, ref: Ref) -> list[LogLine]:
        """`logs` for async code."""
        return await self.arun(logs_reading(ref))

    # --- moving ------------------------------------------------------------------------------------

    def cancel(self, ref: Ref, *, reason: str | None = None, only_queued: bool = False) -> CancelAnswer:
        """Cancel a job: at once when nobody runs it, by request when somebody does.

        With `only_queued` a running job is left alone. Repeating a request is harmless.

        Raises:
            IllegalMove: it has ended already, or it runs and `only_queued` was asked. `state` tells.
            JobNotFound: it is not there.
        """
        return self.run(cancelling(ref, self.actor, reason, only_queued))

    async def acancel(
        self, ref: Ref, *, reason: str | None = None, only_queued: bool = False
    ) -> CancelAnswer:
        """`cancel` for async code."""
        return await self.arun(cancelling(ref, self.actor, reason, only_queued))

    def revive(self, ref: Ref, *, reason: str | None = None) -> None:
        """Queue a finished job again: its budgets start anew, its attempts count on.

        Raises:
            IllegalMove: it has not ended. Wait for it or cancel it.
            KeyConflict: another job owns its key meanwhile.
            JobNotFound: it is not there.
        """
        self.run(reviving(ref, self.actor, reason))

    async def arevive(self, ref: Ref, *, reason: str | None = None) -> None:
        """`revive` for async code."""
        await self.arun(reviving(ref, self.actor, reason))

    def delete(self, ref: Ref) -> None:
        """Remove a finished job with its timeline and logs. Its key lives on until its own end.

        Raises:
            IllegalMove: it has not ended. Cancel it first.
            JobNotFound: it is not there.
        """
        self.run(deleting(ref))

    async def adelete(self, ref: Ref) -> None:
        """`delete` for async code."""
        await self.arun(deleting(ref))

    # --- waiting -----------------------------------------------------------------------------------

    def wait_ended(self, ref: Ref, timeout_s: float | None = None) -> JobRecord:
        """Wait for a job's end, however it ends, and return it as it stands then.

        Raises:
            ResultTimeout: it has not ended within `timeout_s` seconds. It goes on; ask again.
            JobNotFound: it is not there.
        """
        job_id = self.run(resolving(ref))
        self.outcome(job_id, timeout_s)
        return self.get(job_id if isinstance(ref, str) else ref)

    async def await_ended(self, ref: Ref, timeout_s: float | None = None) -> JobRecord:
        """`wait_ended` for async code."""
        job_id = await self.arun(resolving(ref))
        await self.aoutcome(job_id, timeout_s)
        return await self.aget(job_id if isinstance(ref, str) else ref)

    # --- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Send the wake-ups that wait, end the thread that waits for results. The engine stays open."""
        self.stop_waiting()
        self.engine.flush(FLUSH_S)

    async def aclose(self) -> None:
        """`close`, after the submits of this event loop are through."""
        group = self._groups.get(asyncio.get_running_loop())
        if group is not None:
            await group.drain()
        await asyncio.to_thread(self.close)

    # --- inside ------------------------------------------------------------------------------------

    def _group(self) -> Group:
        loop = asyncio.get_running_loop()
        group = self._groups.get(loop)
        if group is None:
            group = self._groups[loop] = Group(self._send, loop)
        return group

    async def _send(self, submissions: Sequence[Submission]) -> None:
        await self._astore(submissions, None)

    async def _astore(self, submissions: Sequence[Submission], connection: Any) -> list[Submitted]:
        now_us = local_now_us()
        answers = await self.arun(self._storing(submissions, connection), connection)
        self._tell(submissions, answers, now_us, wake=connection is None)
        return answers

    def _storing(self, submissions: Sequence[Submission], connection: Any) -> Procedure[list[Submitted]]:
        may_copy = connection is None and self.engine.dialect == "postgres"
        return storing(submissions, self.patience_s, may_copy=may_copy)

    def _tell(
        self, submissions: Sequence[Submission], answers: Sequence[Submitted], now_us: int, *, wake: bool
    ) -> None:
        """Wake workers for what is due, and tell who watches. Inside a caller's transaction nothing is due yet."""
        if wake:
            made = [
                each.job.template
                for each, answer in zip(submissions, answers, strict=True)
                if not answer.replay
            ]
            self.engine.wake(due_lanes({id(template): template for template in made}.values(), now_us))
        if self.telemetry.is_heard:
            self._emit_submitted(submissions, answers)

    def _emit_submitted(self, submissions: Sequence[Submission], answers: Sequence[Submitted]) -> None:
        counts: dict[tuple[str, str], list[int]] = {}
        for each, answer in zip(submissions, answers, strict=True):
            count = counts.setdefault((each.job.template.name, each.job.template.queue), [0, 0])
            count[0] += 1
            count[1] += answer.replay
        for (name, queue), (count_all, replayed) in counts.items():
            self.telemetry.emit(Event.SUBMITTED, job=name, queue=queue, count=count_all, replayed=replayed)
