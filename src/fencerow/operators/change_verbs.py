"""Changing jobs that nobody runs: what `Client` and handles are given for it, sync and async."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import Ref
from fencerow.core.model.change import AskedChange, JobChanged
from fencerow.core.model.seconds import Seconds
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure


class ChangeVerbs(ClientBase):
    """Each method has an async twin with an `a` in front."""

    def changing(
        self, ref: Ref, asked: AskedChange, reason: str | None = None, connection: object | None = None
    ) -> Procedure[JobChanged]:
        """Check what is asked, and change the job so: see `change`."""
        from fencerow.operators.changing import changing  # who only submits never loads it
        from fencerow.operators.job_change import job_change, new_arguments

        wanted = job_change(
            run_at=asked.run_at,
            delay_s=asked.delay_s,
            run_now=asked.run_now,
            priority=asked.priority,
            queue=asked.queue,
            arguments=new_arguments(asked.args, self.encode_arguments),
        )
        return (yield from changing(ref, wanted, self.actor, reason, connection))

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
        asked = AskedChange(run_at=run_at, delay_s=delay_s, priority=priority, queue=queue, args=args)
        return (yield from self.changing(ref, asked, reason, connection))

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
        return (yield from self.changing(ref, AskedChange(run_now=True), reason, connection))

    arun_now = averb(run_now)
