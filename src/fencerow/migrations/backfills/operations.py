"""The operations of a backfill: a table of the user's walked by key, each range noted in the commit that wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from fencerow.core.model.job import At
from fencerow.db.queries import Queries
from fencerow.db.run import (
    Param,
    Rows,
    Steps,
    as_int,
    execute,
    execute_composed,
    operation,
    text_or_none,
)
from fencerow.guards.names import quoted
from fencerow.guards.replace.user_table import UserTable
from fencerow.migrations.errors import InvalidBackfill

LaneState = Literal["running", "paused", "failed", "done"]
COUNTED_MAX = 100_000  # a table that is estimated above this is not counted


@dataclass(frozen=True, slots=True)
class BackfillSource:
    """The table that is walked, and the column by which."""

    table: UserTable

    @staticmethod
    def of(table: str, key: str) -> BackfillSource:
        """Checks both names."""
        return BackfillSource(UserTable(table, key))

    @property
    def key(self) -> str:
        return quoted(self.table.source_column)

    def __str__(self) -> str:
        return f"{self.table.name}.{self.table.source_column}"


@dataclass(frozen=True, slots=True)
class Walk:
    """One attempt at one lane: what its every statement names."""

    name: str
    lane: int
    run: int
    attempt: int

    def params(self, **more: Param) -> dict[str, Param]:
        return {"name": self.name, "lane": self.lane, "run": self.run, "attempt": self.attempt, **more}


@dataclass(frozen=True, slots=True)
class TakenRange:
    """A lane that is locked for its next range."""

    kind: str
    first: str | None
    last: str | None
    cursor: str | None
    failures: int


@dataclass(frozen=True, slots=True)
class Range:
    """The keys of the next range as the driver gives them, both included, and how many rows have them."""

    first: Any
    last: Any
    rows: int


@dataclass(frozen=True, slots=True)
class Lane:
    """How far a lane is."""

    name: str
    lane: int
    target: str
    kind: str
    state: LaneState
    run: int
    first: str | None
    last: str | None
    cursor: str | None
    rows_done: int
    ranges_done: int
    rows_planned: int
    failures: int
    failed_first: str | None
    failed_last: str | None
    error: str | None
    run_at_us: int
    run_rows: int
    moved_at_us: int

    run_at = At("run_at_us")
    moved_at = At("moved_at_us")


@operation(writes="jobs")
def plan(name: str, source: BackfillSource, lanes: int, queries: Queries) -> Steps[list[tuple[int, int]]]:
    """Make the lanes of a backfill that is not there yet; returns number and run of each that has rows to walk.

    Raises:
        UnusableTable: there is no such table or column.
        InvalidBackfill: it is known with another table or key, or its keys cannot be walked so.
    """
    known = _lanes((yield from execute("read_backfills", name=name)))
    if known:
        refuse_another(known, source)
        return []
    yield from source.table.columns(queries.dialect)
    first, last = yield from _ends(source, queries)
    if first is None or last is None:
        yield from _make(name, source, 0, "number", "done", None, None, 0)
        return []
    kind = "number" if isinstance(first, int) else "text"
    rows = yield from _count(source, queries)
    made = []
    for lane, (low, high) in enumerate(_shares(first, last, lanes, kind)):
        run = yield from _make(name, source, lane, kind, "running", low, high, rows)
        if run is not None:
            made.append((lane, run))
    return made


@operation(writes="")
def lanes_of(name: str | None) -> Steps[list[Lane]]:
    """The lanes of one backfill, or of all."""
    return _lanes((yield from execute("read_backfills", name=name)))


@operation(writes="jobs")
def take(walk: Walk) -> Steps[TakenRange | None]:
    """Lock the lane until the transaction ends; None when it is not this attempt's to walk any more."""
    rows = yield from execute("take_backfill", walk.params())
    if not rows:
        return None
    kind, first, last, cursor, failures = rows[0]
    return TakenRange(
        str(kind), text_or_none(first), text_or_none(last), text_or_none(cursor), as_int(failures)
    )


@operation(writes="jobs")
def next_range(
    taken: TakenRange, source: BackfillSource, batch_rows: int, queries: Queries
) -> Steps[Range | None]:
    """The range after the cursor; None behind the last. Part of the transaction that took the lane."""
    low, beyond = (taken.first, ">=") if taken.cursor is None else (taken.cursor, ">")
    key = source.key
    # Not min and max: PostgreSQL has neither for every type that has an order, such as uuid.
    text = f"""
        WITH step AS (
            SELECT {key} AS k FROM {source.table.quoted}
            WHERE {key} {beyond} :low AND {key} <= :high
            ORDER BY {key} LIMIT {int(batch_rows)}
        )
        SELECT (SELECT k FROM step ORDER BY k LIMIT 1) AS first,
               (SELECT k FROM step ORDER BY k DESC LIMIT 1) AS last,
               (SELECT count(*) FROM step) AS rows
    """  # noqa: S608 (checked names, and a whole number)
    params = {"low": _key(low, taken.kind), "high": _key(taken.last, taken.kind)}
    (found,) = yield from execute_composed(queries.composed("next_range", text), params)
    return Range(found["first"], found["last"], int(found["rows"])) if found["rows"] else None


@operation(writes="jobs")
def move(walk: Walk, taken: TakenRange, done: Range) -> Steps[bool]:
    """Note the range as done; false when the lane is not this attempt's any more, and all must be rolled back."""
    params = walk.params(cursor=taken.cursor, last=str(done.last), rows=done.rows)
    return bool((yield from execute("move_backfill", params)))


@operation(writes="jobs")
def end(walk: Walk) -> Steps[bool]:
    """End the lane."""
    return bool((yield from execute("end_backfill", walk.params())))


@operation(writes="jobs")
def fail(walk: Walk, tried: Range | None, error: str, failures_max: int) -> Steps[tuple[int, bool] | None]:
    """Count a failure: how many there are, and whether the lane stopped. None when it is not this attempt's."""
    first, last = (None, None) if tried is None else (str(tried.first), str(tried.last))
    rows = yield from execute(
        "fail_backfill", walk.params(first=first, last=last, error=error, failures_max=failures_max)
    )
    return (as_int(rows[0][0]), rows[0][1] == "failed") if rows else None


@operation(writes="jobs")
def pause(name: str) -> Steps[int]:
    """Stop what runs; how many lanes that were."""
    return len((yield from execute("pause_backfill", name=name)))


@operation(writes="jobs")
def resume(name: str) -> Steps[list[tuple[int, int]]]:
    """Begin a new run of every lane that is not done; number and run of each."""
    return [(as_int(row[0]), as_int(row[1])) for row in (yield from execute("resume_backfill", name=name))]


@operation(writes="jobs")
def forget(name: str) -> Steps[bool]:
    """Remove all that is known of it; false when something runs, or nothing is known."""
    return bool((yield from execute("forget_backfill", name=name)))


@operation(writes="")
def lag_s() -> Steps[float]:
    """How far the slowest replica is behind."""
    found = (yield from execute("replication_lag"))[0][0]
    return float(cast(float, found))


def refuse_another(known: Sequence[Lane], source: BackfillSource) -> None:
    """A name means one table and key.

    Raises:
        InvalidBackfill: it is known with others.
    """
    if known[0].target != str(source):
        raise InvalidBackfill(
            f"backfill {known[0].name} walks {known[0].target}",
            f"here it is declared with {source}",
            "give this one another name, or forget the other one",
        )


def _ends(source: BackfillSource, queries: Queries) -> Steps[tuple[Any, Any]]:
    key, table = source.key, source.table.quoted
    text = f"""
        SELECT (SELECT {key} FROM {table} WHERE {key} IS NOT NULL ORDER BY {key} LIMIT 1) AS first,
               (SELECT {key} FROM {table} WHERE {key} IS NOT NULL ORDER BY {key} DESC LIMIT 1) AS last
    """  # noqa: S608 (checked names)
    (found,) = yield from execute_composed(queries.composed("ends_of_table", text), {})
    if isinstance(found["first"], bytes | memoryview):
        raise InvalidBackfill(
            f"{source} is binary",
            "keys are whole numbers, text, or what has a text form",
            "walk another column",
        )
    return found["first"], found["last"]


def _count(source: BackfillSource, queries: Queries) -> Steps[int]:
    """Estimated if it is large, else counted."""
    rows = yield from execute("estimated_rows", target=source.table.quoted)
    estimated = as_int(rows[0][0]) if rows else -1
    if estimated > COUNTED_MAX:
        return estimated
    text = f"SELECT count(*) AS rows FROM {source.table.quoted}"  # noqa: S608
    (found,) = yield from execute_composed(queries.composed("count_of_table", text), {})
    return int(found["rows"])


def _shares(first: Any, last: Any, lanes: int, kind: str) -> list[tuple[str, str]]:
    """The bounds of each lane. Keys that are no numbers cannot be divided without reading them all."""
    if lanes == 1:
        return [(str(first), str(last))]
    if kind != "number":
        raise InvalidBackfill(
            f"{lanes} lanes need a key of whole numbers", "this key is something else", "use lanes=1"
        )
    width = max(1, -(-(last - first + 1) // lanes))
    lows = range(first, last + 1, width)
    return [(str(low), str(min(low + width - 1, last))) for low in lows]


def _key(text: str | None, kind: str) -> int | str | None:
    return int(text) if text is not None and kind == "number" else text


def _make(
    name: str,
    source: BackfillSource,
    lane: int,
    kind: str,
    state: LaneState,
    first: str | None,
    last: str | None,
    rows: int,
) -> Steps[int | None]:
    made = yield from execute(
        "make_backfill",
        name=name,
        lane=lane,
        target=str(source),
        kind=kind,
        state=state,
        first_key=first,
        last_key=last,
        rows_planned=rows,
    )
    return as_int(made[0][0]) if made else None


def _lanes(rows: Rows) -> list[Lane]:
    return [Lane(*cast(Any, row)) for row in rows]
