"""What tells others of jobs that are queued again: woken, revived, or put back."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.model.lane import family_of
from fencerow.core.model.wakeup import Arrived, Queued, encode
from fencerow.core.store.attempts import Requeued


def hints_of_queued(jobs: Sequence[Requeued]) -> list[str]:
    """One for each lane, and one for all places where jobs wait."""
    return [encode(each) for each in in_lanes(jobs)] + [encode(Arrived())] * any(job.waits for job in jobs)


def in_lanes(jobs: Sequence[Requeued]) -> list[Queued]:
    """For each lane when the first of its jobs is due: it may lie behind the lane's mark."""
    first: dict[tuple[str, int, str], int] = {}
    for job in jobs:
        if not job.waits:
            lane = (job.queue, job.priority, family_of(job.lane))
            first[lane] = min(job.run_at_us, first.get(lane, job.run_at_us))
    return [Queued(queue, priority, at_us, lane) for (queue, priority, lane), at_us in first.items()]
