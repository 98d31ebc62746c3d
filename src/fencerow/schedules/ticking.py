"""The tick: what is due fires, once, and the jobs that it makes are submitted in the very same transaction."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from fencerow.calendar.zones import tzdata_version
from fencerow.core.errors import FencerowError
from fencerow.core.model.job import At, NewJob
from fencerow.core.store import store
from fencerow.core.store.workers import refuse_older
from fencerow.db.run import Rows, Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.db.text import clean, said_of, storable
from fencerow.schedules.definition import Computable, Overlap, known, seed_of
from fencerow.schedules.misfire import DueFires, due
from fencerow.turns.limiting import refuse_unknown_limits

TICK_ROWS = 100
# Then the rest is left for the next tick: meanwhile its transaction says nothing, and SQLite has no other writer.
DECIDE_S = 0.02
TROUBLE_MAX = 500

Key = tuple[str, str]  # name and entity


class Made(StrEnum):
    """What became of a fire: a job, or why there is none."""

    JOB = "job"
    OVERLAP = "overlap"  # an earlier job had not ended
    WINDOW = "window"  # it fell into a maintenance window
    LATE = "late"  # it was missed, and is not made up


class Tick(msgspec.Struct, frozen=True):
    """A fire that was decided. Instants are microseconds since 1970. `state` is that of the job, None if it is gone.

    `left_out`: other fires that were missed until then and are not made up, counted up to 100. `made_by`: who asked.
    """

    entity: str
    fire_us: int
    made: Made
    job_id: str | None
    left_out: int
    at_us: int
    made_by: str | None
    state: str | None

    fire = At("fire_us")
    at = At("at_us")


class NewTick(msgspec.Struct, frozen=True):
    """A fire that is being decided."""

    name: str
    entity: str
    fire_us: int
    made: Made
    job_id: str | None = None
    left_out: int = 0
    made_by: str | None = None


@dataclass(frozen=True, slots=True)
class DueRow:
    """A row that is due, locked, with what is to be done about it."""

    key: Key
    version: int
    seen_us: int
    known: Computable
    due: DueFires
    now_us: int

    @property
    def run_at_us(self) -> int | None:
        """When its jobs are due, if not at once: in a maintenance window nothing starts, also what is made up late."""
        windows = self.known.windows
        return windows.opens_after(self.now_us) if windows.closed(self.now_us) else None


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a tick came to: its jobs, how many rows were due, and which of them stay as they are.

    `troubles`: this worker cannot compute them. `refused`: their jobs need what is not there now, for any worker.
    """

    jobs: list[NewJob] = field(default_factory=list)
    rows: int = 0
    troubles: Mapping[Key, str] = field(default_factory=dict)
    refused: Mapping[Key, str] = field(default_factory=dict)

    @property
    def left(self) -> set[Key]:
        """The rows that stay as they are."""
        return {*self.troubles, *self.refused}


@operation(repeatable=True, computes=True)
def tick(besides: Collection[Key] = (), only: Key | None = None) -> Steps[Ticked]:
    """Fire what is due, at most so many rows at once; `besides` are left to others. May be repeated. `only`: this row.

    Locks the rows that are due and not locked by others; those for which there was no time stay due. After a crash all
    of it happens again, or none of it did.
    """
    (one,) = (None,) if only is None else _texts([only])
    found = yield from execute("due_schedules", besides=_texts(besides), only=one, limit=TICK_ROWS)
    if not found:
        return Ticked()
    decided, troubles = _decided(found)
    refused = yield from _refused(decided)
    rows = [row for row in decided if row.key not in refused]
    busy = yield from overlapping([row.key for row in rows if _skips(row)])
    ticks, jobs = _fired(rows, busy)
    submitted = yield from record(ticks, jobs)
    yield from execute("advance_schedules", moves=_moves(rows, ticks, submitted), zones=tzdata_version())
    return Ticked(submitted, len(found), troubles, refused)


@operation(alone=True, repeatable=True, writes="")
def due_keys(besides: Collection[Key] = ()) -> Steps[list[Key]]:
    """The rows at which a tick would look."""
    rows = yield from execute("due_keys", besides=_texts(besides), limit=TICK_ROWS)
    return [(str(name), str(entity)) for name, entity in rows]


@operation(alone=True, repeatable=True, writes="")
def next_fire(besides: Collection[Key] = ()) -> Steps[tuple[int | None, int]]:
    """When the next schedule is due, and the time now; `besides` are left to others."""
    ((next_us, now_us),) = yield from execute("next_fire", besides=_texts(besides))
    return as_int_or_none(next_us), as_int(now_us)


@operation(repeatable=True)
def note_troubles(troubles: Mapping[Key, str]) -> Steps[None]:
    """State on the rows why they do not fire here."""
    rows = [
        {"name": name, "entity": entity, "trouble": text} for (name, entity), text in sorted(troubles.items())
    ]
    yield from execute("note_troubles", troubles=msgspec.json.encode(rows).decode())


@operation(alone=True, repeatable=True, writes="")
def read_ticks(name: str, entity: str | None, limit: int) -> Steps[list[Tick]]:
    """The latest ticks, the newest first."""
    rows = yield from execute("read_ticks", name=name, entity=entity, limit=limit)
    return [
        Tick(
            str(entity),
            as_int(fire),
            Made(str(made)),
            text_or_none(job_id),
            as_int(left),
            as_int(at),
            text_or_none(by),
            text_or_none(state),
        )
        for entity, fire, made, job_id, left, at, by, state in rows
    ]


@operation(alone=True, repeatable=True)
def note_ended(*, limit: int) -> Steps[int]:
    """Note of so many ticks that their jobs have ended; returns of how many."""
    return len((yield from execute("note_ended", limit=limit)))


@operation(repeatable=True)
def purge_ticks(*, age_s: float, limit: int) -> Steps[int]:
    """Forget ticks that are older; returns how many. The rows of their schedules say up to which fire that went."""
    yield from execute("note_forgotten", age_s=age_s, limit=limit)
    return len((yield from execute("purge_ticks", age_s=age_s, limit=limit)))


# --- parts of the tick, and of a run that a person asks for ---------------------------------------------


def overlapping(keys: Collection[Key]) -> Steps[set[Key]]:
    """Which of these have a job that has not ended."""
    asked = [{"name": name, "entity": entity} for name, entity in keys]
    if not asked:
        return set()
    rows = yield from execute("overlapping", asked=msgspec.json.encode(asked).decode())
    return {(str(name), str(entity)) for name, entity in rows}


def record(ticks: Sequence[NewTick], jobs: Mapping[str, NewJob]) -> Steps[list[NewJob]]:
    """Write the ticks, and submit the jobs of those that were not decided before; returns these jobs."""
    if not ticks:
        return []
    rows = yield from execute("insert_ticks", ticks=msgspec.json.encode(ticks).decode())
    return (yield from submit_of(rows, ticks, jobs))


def make_up(ticks: Sequence[NewTick], jobs: Mapping[str, NewJob]) -> Steps[list[NewJob]]:
    """The same for fires of the past, of which some may have been decided without a job."""
    rows = yield from execute("make_up_ticks", ticks=msgspec.json.encode(ticks).decode())
    return (yield from submit_of(rows, ticks, jobs))


def submit_of(rows: Rows, ticks: Sequence[NewTick], jobs: Mapping[str, NewJob]) -> Steps[list[NewJob]]:
    """Submit the jobs of the ticks that were written now; returns them."""
    fresh = {(str(name), str(entity), as_int(fire)) for name, entity, fire in rows}
    submitted = [
        jobs[each.job_id]
        for each in ticks
        if each.job_id is not None and (each.name, each.entity, each.fire_us) in fresh
    ]
    if submitted:
        more = any(job.writes_more for job in submitted)
        yield from (store.submit_gated if more else store.submit)(submitted).steps()
    return submitted


# --- inside ---------------------------------------------------------------------------------------------


def _decided(found: Rows) -> tuple[list[DueRow], dict[Key, str]]:
    """What is to be done about each row, for a while; those that cannot be computed here stay as they are.

    After an outage one row may have a thousand fires to count. The first is always decided, so ticks come to all.
    """
    rows: list[DueRow] = []
    troubles: dict[Key, str] = {}
    until_s = time.monotonic() + DECIDE_S
    for name, entity, definition, version, next_us, now_us in found:
        if (rows or troubles) and time.monotonic() >= until_s:
            break
        key = str(name), str(entity)
        try:
            read = known(str(definition))
            decided = due(
                read.spec, seed_of(*key), as_int(next_us), as_int(now_us), read.catching, read.skipped
            )
        except Exception as error:  # whatever it is, it must not keep the others from firing
            troubles[key] = trouble_of(error)
            continue
        rows.append(DueRow(key, as_int(version), as_int(next_us), read, decided, as_int(now_us)))
    return rows, troubles


def _refused(rows: Sequence[DueRow]) -> Steps[dict[Key, str]]:
    """Why the jobs of some rows cannot be submitted now, by nobody. They keep no other row from firing."""
    careful = [row for row in rows if row.due.fires and (row.known.rules or row.known.definition.work.limits)]
    if (yield from _refusal(careful)) is None:
        return {}
    refused: dict[Key, str] = {}
    for row in careful:
        text = yield from _refusal([row])
        if text is not None:
            refused[row.key] = text
    return refused


def _refusal(rows: Sequence[DueRow]) -> Steps[str | None]:
    """Why not all that these jobs need is there: their limits, and workers that know their rules; None if it is."""
    limits = {name for row in rows for name in row.known.definition.work.limits or ()}
    try:
        yield from refuse_older(frozenset().union(*(row.known.rules for row in rows)))
        if limits:
            yield from refuse_unknown_limits(sorted(limits))
    except FencerowError as error:
        return _said(error.line)
    return None


def trouble_of(error: Exception) -> str:
    """What a row says of an error that it caused."""
    return _said(said_of(error))


def _said(text: str) -> str:
    return storable(clean(text))[:TROUBLE_MAX]


def _skips(row: DueRow) -> bool:
    return row.known.definition.overlap is Overlap.SKIP and bool(row.due.fires)


def _made(row: DueRow, fire_us: int, is_free: bool) -> Made:
    """What becomes of a fire of this row. Whether it falls into a window is asked of its own instant, not of now."""
    if row.known.skipped.closed(fire_us):
        return Made.WINDOW
    return Made.JOB if is_free else Made.OVERLAP


def _fired(rows: Sequence[DueRow], busy: set[Key]) -> tuple[list[NewTick], dict[str, NewJob]]:
    """The ticks of these rows, and the jobs that they make, by id."""
    ticks: list[NewTick] = []
    jobs: dict[str, NewJob] = {}
    for row in rows:
        if not row.due.fires:  # all were missed for good: the tick says so
            ticks.append(NewTick(*row.key, row.seen_us, Made.LATE, left_out=row.due.left_out - 1))
        left_out, is_free = row.due.left_out, row.key not in busy
        for fire_us in row.due.fires:
            made = _made(row, fire_us, is_free)
            job_id = None
            if made is Made.JOB:
                is_free = not _skips(row)  # of several at once the first has a job, and is the next one's
                job = row.known.job_of(*row.key, fire_us, row.run_at_us, defers=True)
                jobs[job.id], job_id = job, job.id
            ticks.append(NewTick(*row.key, fire_us, made, job_id, left_out))
            left_out = 0
    return ticks, jobs


def _moves(rows: Sequence[DueRow], ticks: Sequence[NewTick], submitted: Sequence[NewJob]) -> str:
    """What becomes of each row, for the statement that moves them on."""
    stored = {job.id for job in submitted}
    last = {(each.name, each.entity): each for each in ticks if each.job_id in stored}
    moves = [
        {
            "name": row.key[0],
            "entity": row.key[1],
            "seen_us": row.seen_us,
            "version": row.version,
            "next_us": row.due.next_us,
            "last_us": last[row.key].fire_us if row.key in last else None,
            "job_id": last[row.key].job_id if row.key in last else None,
        }
        for row in rows
    ]
    return msgspec.json.encode(moves).decode()


def _texts(keys: Collection[Key]) -> list[str]:
    return [f"{name}/{entity}" for name, entity in keys]
