"""Running a schedule now, because a person asked: its next fire stays where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.core.model.rules import needed
from fencerow.core.store.workers import refuse_older
from fencerow.db.run import Steps, execute, operation
from fencerow.schedules.definition import Computable, Overlap, known
from fencerow.schedules.definitions import RowKind, StandingRow, locked, parts
from fencerow.schedules.ticking import Made, NewTick, overlapping, record


@dataclass(frozen=True, slots=True)
class RunNow:
    """What came of one row: its job, or none because an earlier one has not ended."""

    entity: str
    job_id: str | None


@operation(repeatable=False, computes=True)
def run_now(
    name: str, entity: str | None, *, actor: str | None, force: bool = False, paused: bool = True
) -> Steps[tuple[list[RunNow], list[NewJob]]]:
    """Submit the job of a schedule now, or of each of its entities; with `paused` also of what is paused.

    Where an earlier job may not overlap, none is made while one has not ended; `force` makes it all the same. Locks the
    rows as a tick does, so that the two see each other.
    """
    rows = [row for row in (yield from locked(name, entity)) if row.kind is not RowKind.HEAD]
    runs: list[RunNow] = []
    submitted: list[NewJob] = []
    for part in parts([row for row in rows if paused or not row.paused]):
        made, jobs = yield from _run(name, part, actor, force)
        runs += [RunNow(row.entity, made.get(row.entity)) for row in part]
        submitted += jobs
    return runs, submitted


def _run(
    name: str, rows: Sequence[StandingRow], actor: str | None, force: bool
) -> Steps[tuple[dict[str, str | None], list[NewJob]]]:
    """Of these rows: the job of each that has one, by its entity, and the jobs."""
    read = {row.entity: known(row.text) for row in rows}
    careful = (
        []
        if force
        else [(name, key) for key, each in read.items() if each.definition.overlap is Overlap.SKIP]
    )
    busy = yield from overlapping(careful)
    ticks, jobs = _ticks(name, [row for row in rows if (name, row.entity) not in busy], read, actor)
    yield from refuse_older(needed(jobs.values()))
    submitted = yield from record(ticks, jobs)
    stored = {job.id for job in submitted}
    runs = [
        {"name": name, "entity": each.entity, "last_us": each.fire_us, "job_id": each.job_id}
        for each in ticks
        if each.job_id in stored
    ]
    if runs:
        yield from execute("note_run", runs=msgspec.json.encode(runs).decode())
    return {each.entity: each.job_id for each in ticks if each.job_id in stored}, submitted


def _ticks(
    name: str, rows: list[StandingRow], read: dict[str, Computable], actor: str | None
) -> tuple[list[NewTick], dict[str, NewJob]]:
    ticks: list[NewTick] = []
    jobs: dict[str, NewJob] = {}
    for row in rows:
        job = read[row.entity].job_of(name, row.entity, row.now_us)
        jobs[job.id] = job
        ticks.append(NewTick(name, row.entity, row.now_us, Made.JOB, job.id, made_by=actor or "somebody"))
    return ticks, jobs
