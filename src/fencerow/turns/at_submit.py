"""Turns that come with the submit: of the first job of a key of which no job is live.

It is stored queued, so no hand-over has to look at its gate and to write its row once more. A hand-over gives turns
under the lock of the gate's row, so a submit needs that too: it waits for nobody who has it, and then leaves all to a
hand-over, as it does where anything is less plain than that one runs at once, is due now and needs no other turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.db.run import Steps, execute, first_column


def free(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """The first of each key of which no job is live, as far as a look without locks tells."""
    firsts = _firsts(jobs)
    if not firsts:
        return []
    gates, queues = [str(job.gate) for job in firsts], [job.template.queue for job in firsts]
    found = set(first_column((yield from execute("free_gates", gates=gates, queues=queues))))
    return [job for job in firsts if job.gate in found]


def turned(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """These jobs, of which no two have one key, those with their turn whose gate could be locked and is free."""
    gates = [str(job.gate) for job in jobs]
    locked = first_column((yield from execute("lock_free_gates", gates=gates)))
    # In a later statement than the locks: what was given by who had one of them is seen now.
    taken = first_column((yield from execute("taken_gates", gates=locked))) if locked else []
    given = set(locked).difference(taken)
    return [msgspec.structs.replace(job, has_turn=True) if job.gate in given else job for job in jobs]


def _firsts(jobs: Iterable[NewJob]) -> list[NewJob]:
    """Of each key the job that comes first; none, where that is not plain."""
    first: dict[str, NewJob] = {}
    for job in jobs:
        key = job.exclusive
        if key is not None and (key not in first or _order(job) < _order(first[key])):
            first[key] = job
    return [job for job in first.values() if _is_plain(job)]


def _order(job: NewJob) -> tuple[bool, int, str]:
    """Whoever is not due comes last."""
    return not _is_due(job), -job.template.priority, job.id


def _is_due(job: NewJob) -> bool:
    return job.template.delay_s <= 0 and job.template.run_at_us is None


def _is_plain(job: NewJob) -> bool:
    """Whether it is due now, needs no other turn, and lets nobody run beside itself."""
    return (
        _is_due(job)
        and job.limits is None
        and job.terms is None  # by which it may wait for more
        and job.template.exclusive_at_once in (None, 1)
    )
