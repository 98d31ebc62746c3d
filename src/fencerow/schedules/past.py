"""The fires of a stretch of the past, made because a person asked: a backfill of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import EPOCH, At, NewJob, moment
from fencerow.core.model.rules import needed
from fencerow.core.store.workers import refuse_older
from fencerow.db.run import Procedure, Steps, as_int, ask, execute, operation
from fencerow.schedules.definition import known, seed_of
from fencerow.schedules.definitions import RowKind, locked
from fencerow.schedules.looking import read_schedules
from fencerow.schedules.shown import ScheduleRecord
from fencerow.schedules.ticking import Made, NewTick, make_up

AT_ONCE = 500
PAGE_ROWS = 1000
FIRES_MAX = 10_000

Fire = tuple[str, int]  # the entity, and when it was due


class BackfilledFire(msgspec.Struct, frozen=True):
    """A fire of the past. `job_id`: of the job that was made now. `was_made`: it has had a job before, so none was, or
    whether it has was forgotten just now."""

    entity: str
    fire_us: int
    job_id: str | None = None
    was_made: bool = False

    fire = At("fire_us")


@operation(repeatable=True, writes="")
def fires_with_job(name: str, entity: str | None, start_us: int, end_us: int) -> Steps[set[Fire]]:
    """Which fires in [start, end) have made a job."""
    rows = yield from execute("fires_with_job", name=name, entity=entity, start_us=start_us, end_us=end_us)
    return {(str(entity_of), as_int(fire)) for entity_of, fire in rows}


@operation(repeatable=False, computes=True)
def backfill(
    name: str, entity: str | None, fires: Sequence[Fire], *, actor: str | None, force: bool = False
) -> Steps[list[tuple[Fire, NewJob]]]:
    """Submit the jobs of these fires, of those that have none. Of a schedule that was removed meanwhile none is made.

    Nor is one of a fire whose tick may have been purged, unless by `force`. Locks the rows as a tick does. Asked again,
    it makes what is missing.
    """
    rows = {row.entity: row for row in (yield from locked(name, entity)) if row.kind is not RowKind.HEAD}
    ticks: list[NewTick] = []
    jobs: dict[str, NewJob] = {}
    for fire_entity, fire_us in fires:
        row = rows.get(fire_entity)
        if row is not None and (force or not _is_forgotten(fire_us, row.forgotten_us)):
            job = known(row.text).job_of(name, fire_entity, fire_us)
            jobs[job.id] = job
            ticks.append(NewTick(name, fire_entity, fire_us, Made.JOB, job.id, made_by=actor or "somebody"))
    yield from refuse_older(needed(jobs.values()))
    made = yield from make_up(ticks, jobs)
    stored = {job.id for job in made}
    return [((each.entity, each.fire_us), jobs[each.job_id]) for each in ticks if each.job_id in stored]


def backfilling(
    name: str,
    entity: str | None,
    fires: Sequence[Fire],
    start_us: int,
    end_us: int,
    actor: str | None,
    force: bool,
) -> Procedure[tuple[list[BackfilledFire], list[NewJob]]]:
    """All of them, so many in one transaction. If it is interrupted, the same again makes the rest."""
    before = yield from ask(fires_with_job(name, entity, start_us, end_us))
    wanted = [fire for fire in fires if fire not in before]
    made: dict[Fire, NewJob] = {}
    for first in range(0, len(wanted), AT_ONCE):
        part = wanted[first : first + AT_ONCE]
        made.update((yield from ask(backfill(name, entity, part, actor=actor, force=force))))
    found = [
        BackfilledFire(*fire, made[fire].id if fire in made else None, fire not in made) for fire in fires
    ]
    return found, list(made.values())


def fires_of_all(
    name: str, entity: str | None, start_us: int, end_us: int, at_most: int, *, force: bool
) -> Procedure[tuple[list[Fire], bool]]:
    """The fires in [start, end) of all rows, the earliest first, and whether there is a row; `force`: see `backfill`.

    Raises:
        InvalidInput: there are more than `at_most`, or some of which nobody knows any more whether they made a job.
        UnknownZone: this machine does not know a time zone.
    """
    found: list[Fire] = []
    after: tuple[str, str] | None = ("", "")
    is_there = False
    while after is not None:
        page = page_of_fires(name, entity, after, start_us, end_us, at_most, len(found), force=force)
        rows, fires, after = yield from ask(page)
        is_there = is_there or rows > 0
        found += fires
    return sorted(found, key=lambda fire: (fire[1], fire[0])), is_there


@operation(repeatable=True, writes="", computes=True)
def page_of_fires(
    name: str,
    entity: str | None,
    after: tuple[str, str],
    start_us: int,
    end_us: int,
    at_most: int,
    before: int,
    *,
    force: bool,
) -> Steps[tuple[int, list[Fire], tuple[str, str] | None]]:
    """Of the rows behind one: how many there are, their fires in [start, end), and the last one if more may follow.

    Raises:
        InvalidInput, UnknownZone: as `fires_of_all`.
    """
    page = yield from read_schedules(
        name=name, entity=entity, entities=True, after=after, limit=PAGE_ROWS
    ).steps()
    rows = [row for row in page if row.kind is not RowKind.HEAD]
    fires = fires_of(rows, start_us, end_us, at_most, before)
    if not force:
        refuse_forgotten(rows, fires)
    return len(rows), fires, (page[-1].name, page[-1].entity) if len(page) == PAGE_ROWS else None


def fires_of(
    rows: Sequence[ScheduleRecord], start_us: int, end_us: int, at_most: int, before: int = 0
) -> list[Fire]:
    """The fires in [start, end), the earliest first; `before` were found in other rows.

    Raises:
        InvalidInput: there are more than `at_most`. UnknownZone: this machine does not know a time zone.
    """
    found: list[Fire] = []
    for row in rows:
        spec, seed = known(row.definition).spec, seed_of(row.name, row.entity)
        room = at_most + 1 - before - len(found)
        found += [(row.entity, fire) for fire in spec.fires(start_us - 1, end_us - 1, seed, room)]
        if before + len(found) > at_most:
            raise InvalidInput(
                f"more than {at_most} fires lie in that time",
                "one backfill makes no more than it was allowed to; nothing was made",
                "choose a shorter time, or allow more (--max, at_most=)",
            )
    return sorted(found, key=lambda fire: (fire[1], fire[0]))


def refuse_forgotten(rows: Sequence[ScheduleRecord], fires: Sequence[Fire]) -> None:
    """Ticks are purged; after that nobody knows which fires made a job.

    Raises:
        InvalidInput: one of these is among them.
    """
    forgotten = {row.entity: row.forgotten_until_us for row in rows}
    for entity, fire_us in fires:
        until_us = forgotten[entity]
        if until_us is not None and _is_forgotten(fire_us, until_us):
            raise InvalidInput(
                f"whether the fire at {moment(fire_us).isoformat()} made a job is no longer known",
                f"ticks are kept for retention_ticks_s, and those up to {moment(until_us).isoformat()} are gone",
                "choose a later time, or make the jobs all the same, a second time perhaps (--force, force=True)",
            )


def _is_forgotten(fire_us: int, until_us: int | None) -> bool:
    return until_us is not None and fire_us <= until_us


def stretch(start: datetime, end: datetime, now_us: int) -> tuple[int, int]:
    """The two instants in microseconds.

    Raises:
        InvalidInput: they have no zone, or are no stretch of the past.
    """
    if start.utcoffset() is None or end.utcoffset() is None:
        raise InvalidInput(
            "a time without a zone was given", "an instant is expected", "write 2026-11-21T08:00Z"
        )
    start_us, end_us = (_microseconds(each) for each in (start, end))
    if not start_us < end_us <= now_us:
        raise InvalidInput(
            f"the time from {start.isoformat()} to {end.isoformat()} cannot be backfilled",
            "it begins before it ends, and it ends in the past; what is to come is made when it comes",
            "correct the two times",
        )
    return start_us, end_us


def check_at_most(at_most: int) -> None:
    """Raises InvalidInput: it is not from 1 to 10,000."""
    if not 1 <= at_most <= FIRES_MAX:
        raise InvalidInput(
            f"at most {at_most} fires were allowed", f"1 to {FIRES_MAX} are expected", "correct it"
        )


def _microseconds(instant: datetime) -> int:
    since = instant - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
