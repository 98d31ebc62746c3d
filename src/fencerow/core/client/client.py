"""`JobsClient`: submits jobs, waits for them and moves them, sync and async, around one engine. See `Client`.

Each verb is one procedure (see `db/verb.py`); its twin with an `a` in front is the same in an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from fencerow.core.client.changing import changing, new_arguments
from fencerow.core.client.handle import Handle
from fencerow.core.client.moving import (
    cancelling,
    reviving,
)
from fencerow.core.client.refs import CancelAnswer, Ref, reading, resolving
from fencerow.core.client.submitting import Submits
from fencerow.core.db.run import Procedure
from fencerow.core.db.verb import averb, verb
from fencerow.core.model.change import JobChanged, job_change
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import JobRecord
from fencerow.core.model.seconds import Seconds

FLUSH_S = 1.0


class JobsClient(Submits):
    """Submits, waits for, changes, cancels and revives jobs.

    Name a job by its id, or by `Key(scope, key)`. Threads and event loops can use one client together. `ready` is
    called before the database is first used. Close the client when done: it may have a thread that waits for
    results.
    """

    # --- looking -----------------------------------------------------------------------------------

    def handle(self, job_id: str) -> Handle[Any]:
        """A handle for the job of this id. Its result comes as plain JSON data. Does not use the database yet.

        Raises:
            InvalidInput: it is no id.
        """
        return Handle(self, parse_id(job_id), msgspec.json.decode, _existed=False)

    @verb
    def get(self, ref: Ref) -> Procedure[JobRecord]:
        """The job as it stands, live or finished.

        Raises:
            JobGone: it was removed, but its key remembers it.
            JobNotFound: there is no such job.
        """
        return (yield from reading(ref))

    aget = averb(get)

    # --- moving ------------------------------------------------------------------------------------

    @verb
    def cancel(
        self, ref: Ref, *, reason: str | None = None, only_queued: bool = False
    ) -> Procedure[CancelAnswer]:
        """Cancel a job: at once if no worker runs it, else by a request to its worker.

        With `only_queued` a running job is left alone. Repeating a request is harmless.

        Raises:
            IllegalMove: it has ended already, or it runs and `only_queued` was given. `state` says which.
            JobNotFound: it is not there.
        """
        return (yield from cancelling(ref, self.actor, reason, only_queued))

    acancel = averb(cancel)

    @verb
    def revive(self, ref: Ref, *, reason: str | None = None) -> Procedure[None]:
        """Queue a finished job again: its budgets are full again, and the number of its attempt goes on.

        Raises:
            IllegalMove: it has not ended. Wait for it or cancel it.
            KeyConflict: another job has its key by now.
            JobNotFound: it is not there.
        """
        return (yield from reviving(ref, self.actor, reason))

    arevive = averb(revive)

    @verb
    def change(
        self,
        ref: Ref,
        *,
        run_at: datetime | None = None,
        delay_s: Seconds | None = None,
        priority: int | None = None,
        queue: str | None = None,
        args: Mapping[str, Any] | None = None,
        reason: str | None = None,
        connection: object | None = None,
    ) -> Procedure[JobChanged]:
        """Change a job while nobody runs it: when it is due, its priority, its queue, its arguments.

        What is not given stays. `run_at` is an aware datetime; `delay_s` counts from now, by the database's clock.
        `args` are all of the new arguments, by name, as JSON data; a client of an app checks them by the job's
        declaration there, any other one stores them as they are. The job's idempotency key stays with what was
        submitted: a repeated submit of that gets this job. The answer says what differs; a change to what was there
        already changes nothing. The job's timeline tells who changed what, of the arguments only their sizes.

        With `connection` it is part of the transaction that is open there, and locks the job until that ends.

        Raises:
            IllegalMove: a worker runs it (whoever claims first wins), or it has ended. `state` says which.
            InvalidInput: nothing is given, a value cannot be used, or the job would expire before it is due.
            InvalidArguments, UnknownJob: the arguments do not fit the declared job, or there is none.
            JobNotFound: it is not there.
            Busy: somebody's transaction locks it. Nothing is changed; try again.
            OutcomeUnknown: the answer was lost, and the job was claimed or has ended since. Look at its timeline.
        """
        wanted = job_change(
            run_at=run_at,
            delay_s=delay_s,
            priority=priority,
            queue=queue,
            arguments=new_arguments(args, self.encode_arguments),
        )
        return (yield from changing(ref, wanted, self.actor, reason, connection))

    achange = averb(change)

    @verb
    def run_now(
        self, ref: Ref, *, reason: str | None = None, connection: object | None = None
    ) -> Procedure[JobChanged]:
        """Make a job due at once that would be due later. One that is due already keeps its place in its queue.

        Raises:
            IllegalMove: a worker runs it, or it has ended. `state` says which.
            JobNotFound: it is not there.
        """
        return (yield from changing(ref, job_change(run_now=True), self.actor, reason, connection))

    arun_now = averb(run_now)

    # --- waiting -----------------------------------------------------------------------------------

    def wait_ended(self, ref: Ref, timeout_s: Seconds | None = None) -> JobRecord:
        """Wait until a job has ended, in whatever final state, and return it.

        Raises:
            ResultTimeout: it has not ended within `timeout_s` seconds. It goes on; ask again.
            JobNotFound: it is not there.
        """
        job_id = self.run(resolving(ref))
        self.outcome(job_id, timeout_s)
        return self.get(job_id if isinstance(ref, str) else ref)

    async def await_ended(self, ref: Ref, timeout_s: Seconds | None = None) -> JobRecord:
        """`wait_ended` for async code."""
        job_id = await self.arun(resolving(ref))
        await self.aoutcome(job_id, timeout_s)
        return await self.aget(job_id if isinstance(ref, str) else ref)

    # --- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Send the wake-ups that are left, and end the thread that waits for results. The engine stays open."""
        self.stop_waiting()
        self.engine.flush(FLUSH_S)

    async def aclose(self) -> None:
        """`close`, after the submits of this event loop are through."""
        await self._drain_submits()
        await asyncio.to_thread(self.close)
