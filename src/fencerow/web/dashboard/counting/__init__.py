"""Bounded counts of jobs by queue and state: what they cost does not grow with how many jobs there are. And how far the
log of a database goes, by which a standby is judged."""

from __future__ import annotations

from typing import Any

import msgspec

from fencerow.core.model.state import State
from fencerow.core.store.decoding import read_or
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation

COUNTED_MAX = 2_000  # live jobs of each queue and state; where there are more, one more is returned
RECENT_MAX = 10_000  # jobs of each final state that ended lately
RECENT_S = 86_400.0
PATIENCE_S = 1.0  # for how far a log goes


class LiveCount(msgspec.Struct, frozen=True):
    """Live jobs of one queue and state, counted up to `COUNTED_MAX` + 1.

    `first_us`: the earliest instant at which one of those counted was due, or was claimed if they run.
    """

    queue: str
    state: State
    jobs: int
    first_us: int | None
    now_us: int


@operation(alone=True, repeatable=True, writes="")
def live_counts() -> Steps[list[LiveCount]]:
    """Live jobs by queue and state."""
    rows = yield from execute("counted_live", limit=COUNTED_MAX + 1)
    return [
        LiveCount(str(row[0]), State(str(row[1])), as_int(row[2]), as_int_or_none(row[3]), as_int(row[4]))
        for row in rows
    ]


class FinalFailure(msgspec.Struct, frozen=True):
    """A job that failed for good, and when."""

    id: str
    name: str
    error: Any
    ended_at_us: int


@operation(alone=True, repeatable=True, writes="")
def latest_failures(*, limit: int) -> Steps[list[FinalFailure]]:
    """The jobs that failed last."""
    rows = yield from execute("latest_failures", limit=limit)
    return [
        FinalFailure(str(row[0]), str(row[1]), read_or(None, Any, str(row[2] or "null")), as_int(row[3]))
        for row in rows
    ]


@operation(alone=True, repeatable=True, writes="")
def recent_counts() -> Steps[dict[State, int]]:
    """Jobs that have ended within the last day and are still kept, by state, counted up to `RECENT_MAX` + 1 each."""
    rows = yield from execute("counted_recent", limit=RECENT_MAX + 1, age_s=RECENT_S)
    return {State(str(row[0])): as_int(row[1]) for row in rows}


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def wal_position() -> Steps[int]:
    """How far the log of the database goes, in bytes."""
    return as_int((yield from execute("wal_position"))[0][0])


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def replayed() -> Steps[tuple[int | None, int]]:
    """How far a replica has come in the log, None where it is none; and the microseconds since its last transaction."""
    ((position, since_us),) = yield from execute("wal_replayed")
    return as_int_or_none(position), as_int(since_us)
