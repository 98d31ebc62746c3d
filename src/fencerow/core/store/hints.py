"""What tells others of jobs that are queued again: woken, revived, or put back."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.model.lane import family_of
from fencerow.core.model.wakeup import Arrived, Queued, encode
from fencerow.core.store.attempts import Requeued


def hints_of_queued(jobs: Sequence[Requeued]) -> list[str]:
    """One for each lane, with the first of its jobs: it may lie behind the lane's mark. And one for all gates."""
    first: dict[tuple[str, int, str], int] = {}
    for job in jobs:
        if not job.waits:
            lane = (job.queue, job.priority, family_of(job.lane))
            first[lane] = min(job.run_at_us, first.get(lane, job.run_at_us))
    hints = [encode(Queued(queue, priority, at_us, lane)) for (queue, priority, lane), at_us in first.items()]
    return hints + [encode(Arrived())] * any(job.waits for job in jobs)
