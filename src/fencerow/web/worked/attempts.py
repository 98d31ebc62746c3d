"""What an attempt's worker notes of it: that it is sent, that its answer comes later, that it is over. No HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fencerow.db.removal import Looked, RemovalInRounds
from fencerow.db.run import Param, Steps, as_int, execute, operation, text_or_none

if TYPE_CHECKING:
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine

PURGE_JOBS = 1000  # at a look
NOWHERE = "00000000-0000-0000-0000-000000000000"  # before all ids


class Fencing(NamedTuple):
    """The attempt that asks."""

    id: str
    holder: str
    attempt: int


class Answered(msgspec.Struct, frozen=True):
    """What an endpoint has answered: `outcome` is succeeded or failed; `answer` the JSON text as it is stored."""

    attempt: int
    outcome: str
    answer: str


class Overdue(msgspec.Struct, frozen=True):
    """An attempt whose answer was to come later, and has not come in time."""

    attempt: int


class Opened(msgspec.Struct, frozen=True):
    """The attempt may be sent; or, if there is something `before`, that is to be dealt with instead."""

    before: Answered | Overdue | None = None


@operation(repeatable=True)
def open_attempt(fencing: Fencing, digest: str, *, answer_s: float, silent_s: float) -> Steps[Opened | None]:
    """Note that the attempt is about to be sent, unless an earlier one left an answer that nobody has dealt with.

    `answer_s`: until when it may be answered at most. `silent_s`: how long its endpoint may be silent once it has said
    that it answers later. None: the attempt no longer holds the job.
    """
    rows = yield from execute("last_worked", **fencing._asdict())
    if not rows:
        return None
    before = _before(rows[0])
    if before is not None:
        return Opened(before)
    times: dict[str, Param] = {"answer_s": answer_s, "silent_s": silent_s}
    made = yield from execute("open_worked", times, **fencing._asdict(), digest=digest)
    return Opened() if made else None


@operation()
def defer(fencing: Fencing) -> Steps[Answered | None]:
    """Note that the endpoint answers later; returns its answer, if that came before this."""
    if (yield from execute("defer_worked", **fencing._asdict())):
        return None
    return (yield from _answer(fencing))


@operation()
def close(fencing: Fencing) -> Steps[Answered | None]:
    """Note that the attempt is over by the reply to its request; returns the answer that came before this, if one did:
    that one counts."""
    if (yield from execute("close_worked", **fencing._asdict())):
        return None
    return (yield from _answer(fencing))


@operation(alone=True, repeatable=True, writes="")
def look(fencing: Fencing) -> Steps[Answered | Overdue | None]:
    """What an attempt that waits in its slot was answered, if it was."""
    rows = yield from execute("worked_answer", **fencing._asdict())
    if not rows:
        return None
    outcome, answer, is_overdue = rows[0]
    if outcome is None:
        return Overdue(fencing.attempt) if is_overdue else None
    return Answered(fencing.attempt, str(outcome), str(answer))


class Standing(NamedTuple):
    """How many attempts wait for an answer; how many are overdue for long, the first for how many seconds."""

    waiting: int
    late: int
    late_s: float


@operation(alone=True, repeatable=True, writes="")
def standing(*, look: int, late_s: float) -> Steps[Standing]:
    """How the attempts stand whose endpoints answer later. So many are looked at."""
    ((waiting, late, first_s),) = yield from execute("waiting_worked", look=look, late_s=late_s)
    return Standing(as_int(waiting), as_int(late), float(str(first_s or 0.0)))


@operation(repeatable=True)
def purge_worked(after: str, *, limit: int) -> Steps[Looked[str]]:
    """Remove what is kept of jobs that are gone, among so many after this one; after the last from the begin."""
    ((looked, last),) = yield from execute("worked_jobs_after", after=after, limit=limit)
    if not looked:
        return Looked(NOWHERE)
    gone = yield from execute("purge_worked", after=after, last=str(last))
    ids = {str(row[0]) for row in gone}
    return Looked(str(last) if as_int(looked) == limit else NOWHERE, as_int(looked), len(ids))


def worked_purges(engine: Engine) -> Sequence[Purge]:
    """What each round of retention takes."""
    return (RemovalInRounds(engine, partial(purge_worked, limit=PURGE_JOBS), NOWHERE).round,)


def _answer(fencing: Fencing) -> Steps[Answered | None]:
    rows = yield from execute("worked_answer", **fencing._asdict())
    if not rows or text_or_none(rows[0][0]) not in ("succeeded", "failed"):
        return None
    return Answered(fencing.attempt, str(rows[0][0]), str(rows[0][1]))


def _before(row: tuple[object, ...]) -> Answered | Overdue | None:
    """What an earlier attempt left. A failure that was counted since is dealt with; a success is not before the end."""
    failures, attempt, outcome, answer, failures_then, deferred, is_overdue = row
    if attempt is None:
        return None
    is_counted = as_int(failures) != as_int(failures_then)
    if outcome == "succeeded" or (outcome == "failed" and not is_counted):
        return Answered(as_int(attempt), str(outcome), str(answer))
    if outcome is None and deferred and is_overdue and not is_counted:
        return Overdue(as_int(attempt))
    return None
