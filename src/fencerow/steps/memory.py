"""What the database keeps of a run: recalled, remembered and waited for under the fence of the attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fencerow.core.store.notes import check_fence
from fencerow.db.removal import Looked
from fencerow.db.run import (
    Param,
    Row,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    first_column,
    operation,
    text_or_none,
)
from fencerow.steps.model import JobWait, Kind, Step

NOWHERE = "00000000-0000-0000-0000-000000000000"  # before all ids


@dataclass(frozen=True, slots=True)
class Fencing:
    """The fence of one attempt."""

    id: str
    holder: str
    attempt: int


class Recalled(msgspec.Struct, frozen=True):
    """What a job remembers, in the order in which it was asked for; the database's time; whether it is ephemeral."""

    steps: list[Step]
    now_us: int
    ephemeral: bool


class Remembering(msgspec.Struct, frozen=True, kw_only=True):
    """A step to remember. `result` is JSON text."""

    name: str
    kind: Kind
    seq: int
    beside: bool
    result: str
    took_s: float | None = None


# What a wing writes beside a step that is remembered, in the same transaction.
Beside = Callable[[Remembering], Steps[None]]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A wait: for a signal, until an instant, for so many seconds from its begin, or for the first of these."""

    name: str
    seq: int
    beside: bool
    signal: str | None = None
    until_us: int | None = None
    delay_s: float | None = None
    over: str = "null"  # what is remembered when its time comes: JSON text


class Waited(msgspec.Struct, frozen=True):
    """What a wait has come to. `result`: what is remembered; None: it goes on, until `until_us` if that is known."""

    result: str | None
    until_us: int | None = None


@operation(repeatable=True, writes="")
def recall(fencing: Fencing) -> Steps[Recalled | None]:
    """What the job remembers; None: the attempt no longer holds it."""
    rows = yield from execute("recall_steps", id=fencing.id, holder=fencing.holder, attempt=fencing.attempt)
    if not rows:
        return None
    steps = yield from steps_of(fencing.id).steps()
    return Recalled(steps, as_int(rows[0][1]), bool(rows[0][0]))


@operation(alone=True, repeatable=True, writes="")
def steps_of(job_id: str) -> Steps[list[Step]]:
    """What a job remembers, in the order in which it was asked for. Nothing of a job that is not there."""
    return [_step(row) for row in (yield from execute("steps_of", id=job_id))]


@operation(repeatable=True)
def remember(fencing: Fencing, step: Remembering, beside: Beside | None = None) -> Steps[bool]:
    """Remember a step's result; false: the attempt no longer holds the job. What it has remembered before stands, with
    what was written beside it."""
    return (yield from _remembered(fencing, step, beside))


@operation(repeatable=True)
def wait(fencing: Fencing, waiting: Waiting) -> Steps[Waited | None]:
    """Take what the attempt waits for if it is there and remember it, or write that it waits; None: it no longer holds
    the job.

    The row of a wait outlives the attempt, and its time runs from the first that wrote it.
    """
    fence: dict[str, Param] = {"id": fencing.id, "holder": fencing.holder, "attempt": fencing.attempt}
    place: dict[str, Param] = {"name": waiting.name, "seq": waiting.seq, "beside": waiting.beside}
    if waiting.signal is not None and (taken := (yield from _taken(fence, place, waiting.signal))):
        return taken
    # It is asked again where the answer of its commit was lost: what was remembered then stands.
    known = yield from execute("remembered_step", **fence, name=waiting.name)
    if known:
        return Waited(str(known[0][0]))
    noted = yield from execute(
        "note_wait",
        **fence,
        name=waiting.name,
        signal=waiting.signal,
        until_us=waiting.until_us,
        delay_s=waiting.delay_s,
    )
    if not noted:
        return None
    if not noted[0][1]:
        return Waited(None, as_int_or_none(noted[0][0]))
    if waiting.signal is not None:
        # The job's row is locked by now. An answer that was under way is there, and none can come behind this.
        if taken := (yield from _taken(fence, place, waiting.signal)):
            return taken
        yield from execute("withdraw_approvals", id=fencing.id, signal=waiting.signal)
    kind = Kind.SLEEP if waiting.signal is None else Kind.SIGNAL
    step = Remembering(
        name=waiting.name, kind=kind, seq=waiting.seq, beside=waiting.beside, result=waiting.over
    )
    if not (yield from _remembered(fencing, step)):
        return None
    yield from execute("forget_wait", id=fencing.id, name=waiting.name)
    return Waited(waiting.over)


@operation(alone=True, repeatable=True, writes="")
def waiting_for(
    job_id: str | None = None, *, signal: str | None = None, limit: int = 100
) -> Steps[list[JobWait]]:
    """What suspended jobs wait for, of one or of all, those first whose time comes first."""
    rows = yield from execute("waiting_for", id=job_id, signal=signal, limit=limit)
    return [_wait(row) for row in rows]


@operation()
def forget_from(job_id: str, seq: int) -> Steps[list[str]]:
    """Forget what a finished job remembers from this place on, what it waited for, and the signals that those steps
    took; returns the names. Nothing of a job that is not finished."""
    names = first_column((yield from execute("forget_steps", id=job_id, seq=seq)))
    if names:
        yield from execute("forget_waits", id=job_id, names=names)
    return names


@operation()
def purge(after: str, *, limit: int) -> Steps[Looked[str]]:
    """Remove what is kept here of jobs that are gone, among so many after this one; after the last from the begin."""
    ((looked, last),) = yield from execute("remembering_jobs_after", after=after, limit=limit)
    if not looked:
        return Looked(NOWHERE)
    gone = yield from execute("purge_steps", after=after, last=str(last))
    ids = {str(row[0]) for row in gone}
    return Looked(str(last) if as_int(looked) == limit else NOWHERE, as_int(looked), len(ids))


def _taken(fence: dict[str, Param], place: dict[str, Param], signal: str) -> Steps[Waited | None]:
    """The first signal that nobody has taken, remembered for this wait; None: there is none."""
    taken = yield from execute("take_signal", **fence, **place, signal=signal)
    if not taken:
        return None
    yield from execute("forget_wait", id=fence["id"], name=place["name"])
    return Waited(str(taken[0][0]))


def _remembered(fencing: Fencing, step: Remembering, beside: Beside | None = None) -> Steps[bool]:
    rows = yield from execute(
        "remember_step",
        id=fencing.id,
        holder=fencing.holder,
        attempt=fencing.attempt,
        name=step.name,
        kind=step.kind.value,
        seq=step.seq,
        beside=step.beside,
        result=step.result,
        took_s=step.took_s,
    )
    if rows:
        if beside is not None:
            yield from beside(step)
        return True
    # Stale or known: a later statement tells.
    held = yield from check_fence(fencing.id, holder=fencing.holder, attempt=fencing.attempt).steps()
    return held is not None


def _step(row: Row) -> Step:
    return Step(
        name=str(row[0]),
        kind=Kind(str(row[1])),
        seq=as_int(row[2]),
        beside=bool(row[3]),
        result=str(row[4]),
        attempt=as_int(row[5]),
        at_us=as_int(row[6]),
        took_s=None if row[7] is None else float(str(row[7])),
    )


def _wait(row: Row) -> JobWait:
    return JobWait(
        job_id=str(row[0]),
        name=str(row[1]),
        queue=str(row[2]),
        wait=str(row[3]),
        signal=text_or_none(row[4]),
        until_us=as_int_or_none(row[5]),
        since_us=as_int(row[6]),
        now_us=as_int(row[7]),
    )
