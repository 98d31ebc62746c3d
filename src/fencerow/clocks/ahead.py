"""Jobs that were written while the database's clock stood ahead, and that nobody's carried time makes due.

Whoever has read a clock carries its time on, and takes what was due by it (docs/decisions/0036). A clock that stood
ahead for less than the pause between two readings was read by nobody. What was submitted then would wait until the
clock has come so far by itself. Such a row tells of it: it was written later than any clock has ever reached.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.store.attempts import Requeued, requeued_rows
from fencerow.core.store.gating import gating
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none

FIRST = "00000000-0000-0000-0000-000000000000"  # no job has this id


class AheadJob(msgspec.Struct, frozen=True, array_like=True):
    """A job that lies ahead, and when it was due when it was found, in the database's microseconds."""

    id: str
    run_at_us: int


class AheadPart(msgspec.Struct, frozen=True):
    """Those jobs of a part of the table that lie ahead, and the id behind which the next part begins."""

    ahead: list[AheadJob]
    next: str


@operation(alone=True, repeatable=True, writes="")
def find_ahead(after: str, *, reached_us: int, limit: int) -> Steps[AheadPart]:
    """Look at the next `limit` live jobs behind this id: which of them lie ahead of now, and of `reached_us`?

    `reached_us`: how far the caller knows the database's clock to have come, in its microseconds.
    """
    rows = yield from execute("find_ahead", after=after, reached_us=reached_us, limit=limit)
    ((last, count, ahead),) = rows
    found = msgspec.json.decode(str(ahead), type=list[AheadJob]) if ahead else []
    return AheadPart(found, str(last) if as_int(count) == limit else FIRST)


@operation(alone=True, repeatable=True, writes="", reads="workers")
def clock_reached() -> Steps[int]:
    """How far any living worker has seen the database's clock, in its microseconds; 0 without a worker."""
    ((reached_us,),) = yield from execute("clock_reached")
    return as_int_or_none(reached_us) or 0


@operation(repeatable=True)
def move_back(jobs: Sequence[AheadJob], *, reached_us: int, actor: str) -> Steps[list[Requeued]]:
    """Move those of these jobs back that lie ahead of now and of `reached_us`, each by how far it was written ahead.

    What was due at once is due now; a delay is kept. Locks the rows; locked ones are left, and so are those that are
    due at another time than they were when they were found. May be repeated, by anybody at any time: a job that was
    moved lies ahead of nothing. Returns where they wait now.
    """
    rows = yield from execute("move_back", seen=msgspec.json.encode(jobs).decode(), reached_us=reached_us)
    moved = requeued_rows(rows)
    if moved:
        notes = [{"id": job.id, "detail": {"run_at_us": job.run_at_us}} for job in moved]
        yield from execute("note_moved_back", notes=msgspec.json.encode(notes).decode(), actor=actor)
    gates = {gate for row in rows if (gate := text_or_none(row[6])) is not None}
    if gates:
        yield from gating().look_again(gates)
    return moved
