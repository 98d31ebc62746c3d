"""What a submit does for the first job of a key of which no job is live: it has its turn at once, or waits at a limit.

It is stored queued, so no hand-over has to look at its gate and to write its row once more. A hand-over gives turns
under the lock of the gate's row, so a submit needs that too: it waits for nobody who has it, and then leaves all to a
hand-over, as it does where anything is less plain than that one runs at once, is due now and needs no other turn.

One that needs turns of limits as well waits at the first of these. At its key it would be sent on to a limit as soon as
that is full, which costs a write of its row, and a look there takes the gates of many keys at once. Those behind it
wait at the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.db.run import Param, Statement, Steps, execute, first_column


def placed(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """These jobs, at a limit the first of each key that needs one, if nobody is at the key. Locks nothing: wherever a
    job waits, a look finds at which of its gates it has to."""
    if not any(job.exclusive is not None and job.limits for job in jobs):
        return list(jobs)
    firsts = [job for job in _firsts(jobs) if job.limits]
    found = set(first_column((yield from execute("free_gates", **_places(firsts))))) if firsts else set()
    ids = {job.id for job in firsts if job.gate in found}
    return [msgspec.structs.replace(job, at_limit=True) if job.id in ids else job for job in jobs]


def turned(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """These jobs, with its turn the first of each key whose gate could be locked and where nobody is."""
    firsts = [job for job in _firsts(jobs) if not job.limits]
    if not firsts:
        return list(jobs)
    free = set(first_column((yield from execute("free_turns", **_places(firsts)))))
    return _given(jobs, {job.id for job in firsts if job.gate in free})


def stands_alone(job: NewJob) -> bool:
    """Whether one statement stores it, with its turn or where it waits."""
    return job.exclusive is not None and not job.limits and job.affinity is None and _is_plain(job)


def alone(job: NewJob, params: Mapping[str, Param]) -> Statement:
    """That statement, on PostgreSQL."""
    own = {"gate": job.gate, "exclusive": job.exclusive, "share": job.share}
    return Statement("submit_one_keyed", {**params, **own})


def free(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """The first of each key where nobody is, as far as a look without locks tells."""
    firsts = [job for job in _firsts(jobs) if not job.limits]
    if not firsts:
        return []
    found = set(first_column((yield from execute("free_gates", **_places(firsts)))))
    return [job for job in firsts if job.gate in found]


def turned_of_free(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """What `free` found, with their turn those whose gate could be locked and is free still."""
    gates = [str(job.gate) for job in jobs]
    free = set(first_column((yield from execute("lock_free_turns", gates=gates))))
    return _given(jobs, {job.id for job in jobs if job.gate in free})


def _places(jobs: Sequence[NewJob]) -> dict[str, list[str]]:
    return {"gates": [str(job.gate) for job in jobs], "queues": [job.template.queue for job in jobs]}


def _given(jobs: Sequence[NewJob], ids: set[str]) -> list[NewJob]:
    return [msgspec.structs.replace(job, has_turn=True) if job.id in ids else job for job in jobs]


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
    """Whether it is due now, and lets nobody run beside itself."""
    return (
        _is_due(job)
        and job.terms is None  # by which it may wait for more
        and job.template.exclusive_at_once in (None, 1)
    )
