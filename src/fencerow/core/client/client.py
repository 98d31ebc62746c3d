"""`JobsClient`: submits jobs, waits for them and moves them, sync and async, around one engine. See `Client`.

Each verb is one procedure (see `core/verb.py`); its twin with an `a` in front is the same in an event loop.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from fencerow.core.answering import answer
from fencerow.core.client.handle import Handle
from fencerow.core.client.moving import cancelling, reviving
from fencerow.core.client.refs import CancelAnswer, Ref, reading, resolving
from fencerow.core.client.submitting import Submits
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import JobRecord
from fencerow.core.model.seconds import Seconds
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure

FLUSH_S = 1.0


@answer
class JobsClient(Submits):
    """Submits, waits for, cancels and revives jobs.

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
            RevivedTooSoon: its compensation has not ended, or it is one and its job runs anew. Wait for that one.
            KeyConflict: another job has its key by now.
            JobNotFound: it is not there.
        """
        return (yield from reviving(ref, self.actor, reason))

    arevive = averb(revive)

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
