"""Moves whose answer was lost: settled by reading what became of them, and repeated only when they did not happen."""

from __future__ import annotations

import time

from fencerow.core.db.run import Procedure, ask
from fencerow.core.errors import Busy, IllegalMove, OutcomeUnknown, Unavailable
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.finish import Moved, Requeued
from fencerow.core.store.moves import Cancelled

NOT_NOW = (Unavailable, Busy)


def cancelled_surely(
    job_id: str, *, actor: str | None, reason: str | None, only_queued: bool
) -> Procedure[Cancelled]:
    """Cancel a job. When the answer is lost, ask again: a job that is cancelled then is what was wanted.

    Raises:
        OutcomeUnknown: the database could not be asked again either.
    """
    cancel = store.cancel(job_id, actor=actor, reason=reason, only_queued=only_queued)
    try:
        return (yield from ask(cancel))
    except OutcomeUnknown as error:
        doubt = error
    try:
        return (yield from ask(cancel))
    except IllegalMove as refused:
        if refused.state != State.CANCELLED:
            raise
        return Cancelled(Moved(job_id, awaited=True))  # whether somebody waits is not known any more
    except NOT_NOW:
        raise doubt from None


def revived_surely(job_id: str, *, actor: str | None, reason: str | None) -> Procedure[Requeued]:
    """Revive a job. When the answer is lost, look whether it was revived since; only if not, revive it again.

    Raises:
        OutcomeUnknown: the database could not be asked.
    """
    revive = store.revive(job_id, actor=actor, reason=reason)
    began = time.monotonic()
    try:
        return (yield from ask(revive))
    except OutcomeUnknown as error:
        doubt = error
    try:
        job = (yield from ask(store.read([job_id]))).get(job_id)
        now_us = yield from ask(store.clock())
        since_us = now_us - round((time.monotonic() - began) * 1_000_000)
        if job is not None and job.revived_at_us is not None and job.revived_at_us >= since_us:
            return Requeued(job.id, job.queue, job.priority, job.run_at_us)
        return (yield from ask(revive))
    except NOT_NOW:
        raise doubt from None


def deleted_surely(job_id: str) -> Procedure[bool]:
    """Delete a finished job; false when it was not there or has not ended. A lost answer is settled by looking.

    Raises:
        OutcomeUnknown: the database could not be asked.
    """
    delete = store.delete([job_id])
    try:
        return bool((yield from ask(delete)))
    except OutcomeUnknown as error:
        doubt = error
    try:
        if job_id not in (yield from ask(store.read_fences([job_id]))):
            return True
        return bool((yield from ask(delete)))
    except NOT_NOW:
        raise doubt from None
