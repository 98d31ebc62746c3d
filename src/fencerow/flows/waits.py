"""A job that waits for a whole flow inside of its handler: it gives its slot back, and is woken when that has ended."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.store.attempts import Requeued
from fencerow.core.store.suspending import wake_whose_wait_is_over
from fencerow.db.run import Steps, execute, first_column, operation

WAITS_MAX = 500


@operation(repeatable=True)
def note_flow_wait(job_id: str, flow_id: str, *, holder: str, attempt: int) -> Steps[bool | None]:
    """Note for which flow the attempt waits; whether it has ended already. None: the attempt no longer holds the job.

    May be repeated. Whoever suspends the job afterwards looks again, so no end of the flow is missed in between.
    """
    rows = yield from execute("note_flow_wait", id=job_id, flow=flow_id, holder=holder, attempt=attempt)
    if not rows:
        return None
    if rows[0][0]:
        yield from execute("forget_flow_wait", id=job_id, attempt=attempt)
    return bool(rows[0][0])


@operation(repeatable=True)
def wake_waiters(*, actor: str | None) -> Steps[list[Requeued]]:
    """Wake jobs that wait for flows that have ended. Locked rows are left: they are found again."""
    ids: Sequence[str] = first_column((yield from execute("flow_waits_over", limit=WAITS_MAX)))
    return (yield from wake_whose_wait_is_over(ids, actor=actor).steps()) if ids else []


@operation(alone=True, repeatable=True, writes="")
def any_wait_over() -> Steps[bool]:
    """Whether a job waits for a flow that has ended, be it that somebody else is just waking it."""
    return bool((yield from execute("any_flow_wait_over")))
