"""`JobsClient`: everything one can do with jobs, sync and async, around one engine. Users meet it as `Client`.

Each verb is one procedure (see `db/verb.py`); its twin with an `a` in front is the same in an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.client.finding import Plain, chosen_by, listing
from fencerow.core.client.handle import Handle
from fencerow.core.client.moving import (
    cancelling,
    deleting,
    logs_reading,
    reviving,
    timeline_reading,
)
from fencerow.core.client.refs import CancelAnswer, Ref, reading, resolving
from fencerow.core.client.submitting import Submits
from fencerow.core.db.run import Procedure
from fencerow.core.db.verb import averb, verb
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import Happening, JobRecord, LogLine
from fencerow.core.model.state import State

FLUSH_S = 1.0


class JobsClient(Submits):
    """Submits, looks at, waits for and moves jobs.

    A job is named by its id, or by `Key(scope, key)`. One client serves threads and event loops together.
    `ready` is called before the database is first used. Close it when done: it may hold a thread for waiting.
    """

    # --- looking -----------------------------------------------------------------------------------

    def handle(self, job_id: str) -> Handle[Any]:
        """A handle of a job known by its id; its result comes as plain JSON data. Asks nothing yet.

        Raises:
            InvalidInput: it is no id.
        """
        return Handle(self, parse_id(job_id), msgspec.json.decode, _existed=False)

    @verb
    def get(self, ref: Ref) -> Procedure[JobRecord]:
        """The job as it stands, live or finished.

        Raises:
            JobGone: it was removed, but its key remembers it.
            JobNotFound: it is nowhere.
        """
        return reading(ref)

    aget = averb(get)

    @verb
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
    ) -> Procedure[list[JobRecord]]:
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
        return listing(chosen, limit)

    alist_jobs = averb(list_jobs)

    @verb
    def timeline(self, ref: Ref) -> Procedure[list[Happening]]:
        """What happened to a job, in order: who submitted it, its failures, who cancelled it.

        Raises:
            JobNotFound: it is not there.
        """
        return timeline_reading(ref)

    atimeline = averb(timeline)

    @verb
    def logs(self, ref: Ref) -> Procedure[list[LogLine]]:
        """The lines kept with a job, in order; none for a job that is not there."""
        return logs_reading(ref)

    alogs = averb(logs)

    # --- moving ------------------------------------------------------------------------------------

    @verb
    def cancel(
        self, ref: Ref, *, reason: str | None = None, only_queued: bool = False
    ) -> Procedure[CancelAnswer]:
        """Cancel a job: at once when nobody runs it, by request when somebody does.

        With `only_queued` a running job is left alone. Repeating a request is harmless.

        Raises:
            IllegalMove: it has ended already, or it runs and `only_queued` was asked. `state` tells.
            JobNotFound: it is not there.
        """
        return cancelling(ref, self.actor, reason, only_queued)

    acancel = averb(cancel)

    @verb
    def revive(self, ref: Ref, *, reason: str | None = None) -> Procedure[None]:
        """Queue a finished job again: its budgets start anew, its attempts count on.

        Raises:
            IllegalMove: it has not ended. Wait for it or cancel it.
            KeyConflict: another job owns its key meanwhile.
            JobNotFound: it is not there.
        """
        return reviving(ref, self.actor, reason)

    arevive = averb(revive)

    @verb
    def delete(self, ref: Ref) -> Procedure[None]:
        """Remove a finished job with its timeline and logs. Its key lives on until its own end.

        Raises:
            IllegalMove: it has not ended. Cancel it first.
            JobNotFound: it is not there.
        """
        return deleting(ref)

    adelete = averb(delete)

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
        await self._drain_submits()
        await asyncio.to_thread(self.close)
