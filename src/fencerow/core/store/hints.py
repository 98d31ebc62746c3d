"""What tells others of jobs that are there to run: stored now, or queued again (woken, revived, put back)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import lru_cache

from fencerow.core.model.job import NewJob, Template
from fencerow.core.model.lane import family_of, lane_of
from fencerow.core.model.wakeup import Arrived, Queued, encode
from fencerow.core.store.attempts import Requeued

ARRIVED = encode(Arrived())


def hints_of_alike(job: NewJob) -> list[str]:
    """`hints_of` for jobs that are alike, of which this is one. Of those that are due at once it is always the same."""
    template = job.template
    if template.run_at_us is not None or job.is_named:
        return hints_of([job])
    return [] if template.delay_s > 0 else [_due_now(template.queue, template.priority)]


@lru_cache(maxsize=1024)
def _due_now(queue: str, priority: int) -> str:
    return encode(Queued(queue, priority))


def hints_of(jobs: Iterable[NewJob]) -> list[str]:
    """The wake-ups for jobs that were stored now: one per lane where some are due, all shares being one, and one if
    some wait for turns."""
    # By identity: comparing templates costs more than the rest, and jobs that are alike have the same.
    free: dict[tuple[int, str], Template] = {}
    waits, known = False, None
    for job in jobs:
        if job.template is known and not job.is_named:
            continue
        if job.needs_turn:
            waits = True
        else:
            free[id(job.template), lane_of(job.share, job.affinity)] = job.template
            known = None if job.is_named else job.template
    now_us = time.time_ns() // 1000  # this host's: whatever starts later needs no hint
    hints = _due_lanes(((template, lane) for (_, lane), template in free.items()), now_us)
    return [*hints, ARRIVED] if waits else hints


def _due_lanes(templates: Iterable[tuple[Template, str]], now_us: int) -> list[str]:
    """One per queue, priority and name of a lane. Workers find later ones in time themselves.

    Of what is due at once no instant is told: the job has one by the database's clock, and by this host's it might seem
    to be before its own job, or to come.
    """
    first: dict[tuple[str, int, str], int | None] = {}
    for template, name in templates:
        due_us = template.run_at_us
        if template.delay_s > 0 or (due_us is not None and due_us > now_us):
            continue
        lane = (template.queue, template.priority, name)
        known_us = first.get(lane)
        first[lane] = known_us if due_us is None else min(due_us, known_us or due_us)
    return [
        encode(Queued(queue, priority, due_us, lane)) for (queue, priority, lane), due_us in first.items()
    ]


def hints_of_queued(jobs: Sequence[Requeued]) -> list[str]:
    """One for each lane, and one for all places where jobs wait."""
    return [encode(each) for each in in_lanes(jobs)] + [ARRIVED] * any(job.waits for job in jobs)


def in_lanes(jobs: Sequence[Requeued]) -> list[Queued]:
    """For each lane when the first of its jobs is due: it may lie behind the lane's mark."""
    first: dict[tuple[str, int, str], int] = {}
    for job in jobs:
        if not job.waits:
            lane = (job.queue, job.priority, family_of(job.lane))
            first[lane] = min(job.run_at_us, first.get(lane, job.run_at_us))
    return [Queued(queue, priority, at_us, lane) for (queue, priority, lane), at_us in first.items()]
