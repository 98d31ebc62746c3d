"""Signals: what is said to a job that waits for it, or will."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fencerow.core.client.refs import Ref, resolving
from fencerow.core.errors import IllegalMove
from fencerow.core.model.ids import new_id, parse_id
from fencerow.core.model.state import FINAL
from fencerow.core.model.value import ValueCodec
from fencerow.core.store.attempts import Requeued, read_fences
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.moves import CANCEL_PATIENCE_S, not_found
from fencerow.core.store.suspending import lock_waiters, wake_locked
from fencerow.db.run import (
    Procedure,
    Steps,
    WakeUp,
    as_int,
    ask,
    execute,
    joining,
    operation,
    text_or_none,
)
from fencerow.db.text import check_text
from fencerow.steps.errors import SignalRefused
from fencerow.steps.model import SIGNAL_LENGTH_MAX, SentSignal

SIGNALS_MAX: Final = 100  # of a job that it has not taken
DATA_BYTES_MAX: Final = 64 * 1024
DATA = ValueCodec.of(Any, payload_bytes_max=DATA_BYTES_MAX)
ROUNDS_MAX = 10


class SignalAnswer(msgspec.Struct, frozen=True):
    """What sending a signal came to. `woken`: the job waited for it. `replay`: it had been sent before."""

    id: str
    job_id: str
    woken: bool = False
    replay: bool = False


class Signalled(msgspec.Struct, frozen=True):
    """The same, with what a wake-up has to say."""

    woken: list[Requeued]
    replay: bool


@operation(repeatable=True, patience_s=CANCEL_PATIENCE_S)
def signal(signal_id: str, job_id: str, name: str, data: str, *, actor: str | None) -> Steps[Signalled]:
    """Keep a signal for the job, and wake it if it waits for that.

    Locks the job's row first, in a statement of its own: whoever suspends the job meanwhile comes before, and is seen
    here, or after, and sees the signal. The row stays locked until the transaction ends.

    Raises:
        SignalRefused: the job has ended, has too many signals that nobody has taken, or the id is that of a signal to
            another job. Nothing is kept.
        JobNotFound: there is no such job. Busy: a transaction of somebody's locks the job.
    """
    for _ in range(ROUNDS_MAX):
        if (yield from lock_waiters([job_id])):
            break
        # A later statement than the look: in the same one it would report a state from before it.
        fence = (yield from read_fences([job_id]).steps()).get(job_id)
        if fence is None:
            raise not_found(job_id)
        if fence.state in FINAL:
            if (yield from _counted(job_id, signal_id))[1]:  # sent again: the job may have taken it and ended
                return Signalled([], True)
            raise _ended(job_id, name, fence.state)
    else:
        raise IllegalMove(
            f"job {job_id} kept changing its state", "others change it at the same time", "send it again"
        )
    waiting, known = yield from _counted(job_id, signal_id)
    if known:
        return Signalled([], True)
    if waiting >= SIGNALS_MAX:
        raise SignalRefused(
            f"job {job_id} has {waiting} signals that it has not taken",
            f"at most {SIGNALS_MAX} are kept",
            "look at what the job does (fencerow steps show), or send fewer",
        )
    kept = yield from execute(
        "send_signal", signal_id=signal_id, id=job_id, name=name, data=data, actor=actor
    )
    if not kept:  # none of this job's, whose row is locked
        raise SignalRefused(
            f"the signal {signal_id} was sent to another job",
            "an id names one signal of one job",
            f"send it to {job_id} under another signal_id",
        )
    return Signalled((yield from wake_locked([job_id], actor=actor, anyway=False)), False)


@operation(alone=True, repeatable=True, writes="")
def signals_of(job_id: str) -> Steps[list[SentSignal]]:
    """The signals that were sent to a job, in order."""
    return [
        SentSignal(
            id=str(row[0]),
            name=str(row[1]),
            data=msgspec.json.decode(str(row[2])),
            sent_by=text_or_none(row[3]),
            sent_at_us=as_int(row[4]),
            taken_as=text_or_none(row[5]),
        )
        for row in (yield from execute("signals_of", id=job_id))
    ]


def signalling(
    ref: Ref, name: str, data: Any, signal_id: str | None, actor: str | None, connection: object | None
) -> Procedure[SignalAnswer]:
    """Send a signal. On a `connection` of the caller's nobody is told: a sweep finds what is committed there."""
    check_text(name, "the name of a signal", SIGNAL_LENGTH_MAX)
    encoded = DATA.encode(data).decode()
    own = new_id() if signal_id is None else parse_id(signal_id)
    job_id = yield from resolving(ref)
    done = yield from ask(joining(signal(own, job_id, name, encoded, actor=actor), connection))
    if connection is None:
        yield WakeUp(hints_of_queued(done.woken))
    return SignalAnswer(own, job_id, bool(done.woken), done.replay)


def _counted(job_id: str, signal_id: str) -> Steps[tuple[int, bool]]:
    """How many signals of the job nobody has taken, and whether this one was sent before."""
    ((waiting, known),) = yield from execute("count_signals", id=job_id, signal_id=signal_id)
    return as_int(waiting), bool(known)


def _ended(job_id: str, name: str, state: object) -> SignalRefused:
    return SignalRefused(
        f"the signal {name!r} was sent to job {job_id}, which is {state}",
        "a job that has ended takes no signal",
        "leave it, or revive the job first",
    )
