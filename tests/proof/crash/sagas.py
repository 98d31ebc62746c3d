"""Crashes in the ends of a job whose steps can be undone: it has ended and its compensation is a job, or neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencerow.core.store import store
from fencerow.db.run import Operation, Steps
from fencerow.retention.disown import disown
from fencerow.saga.storing import note_undo
from fencerow.steps import memory
from fencerow.steps.memory import Remembering
from fencerow.steps.model import Kind
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case
from tests.proof.crash.parts import FENCE
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    SECOND,
    cancel,
    crash,
    die,
    fail,
    new_job,
    overdue,
    reclaim,
    requeue,
    revive,
    stop,
    suspend,
    uid,
    with_running,
)  # fmt: skip

UNDO = uid(960)
DONE = Remembering(name="charge", kind=Kind.STEP, seq=1, beside=False, result='"paid"')


def beside(step: Remembering) -> Steps[None]:
    return note_undo(JOB, name=step.name, seq=step.seq, undo="refund", result=step.result, job=new_job(UNDO))


REMEMBER = memory.remember(FENCE, DONE, beside)


def remembered(*following: Operation[Any], **fields: Any) -> Callable[[], Script]:
    """A running job that has done a step, and what happened then."""

    def setup() -> Script:
        yield from with_running(new_job(**fields))()
        yield REMEMBER
        for each in following:  # noqa: UP028 - each is sent its answer
            yield each

    return setup


def whole() -> Script:
    """Who ended it is gone."""
    known = yield store.read_fences([JOB, UNDO])
    ended = known[JOB].state in ("failed", "cancelled")
    assert (UNDO in known) == ended, f"the job is {known[JOB].state}, its compensation is {known.get(UNDO)}"
    yield store.wake([JOB], actor=None)  # one that sleeps shall end, too


def to_be_undone() -> Script:
    """The attempt asks once more, and fails then."""
    yield REMEMBER
    yield fail(FIRST)
    assert UNDO in (yield store.read_fences([UNDO])), "the step is remembered, and nothing undoes it"


def crashed_to_the_end() -> Script:
    yield from remembered(crashes_max=1)()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)
    yield reclaim(FIRST)
    yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)


def begun_anew() -> Script:
    """Who revives is gone: the job runs again and has forgotten its steps, or neither."""
    steps = yield memory.steps_of(JOB)
    is_queued = (yield store.read_fences([JOB]))[JOB].state == "queued"
    assert is_queued != bool(steps), f"it is {'' if is_queued else 'not '}queued, and remembers {steps}"


def ended(name: str, setup: Callable[[], Script], operation: Operation[Any]) -> Case:
    return Case(name, setup, operation, whole, (JOB, UNDO), (UNDO,))


SAGA_CASES = [
    Case("remember with an undo", with_running(), REMEMBER, to_be_undone, (JOB, UNDO)),
    ended("fail", remembered(), fail(FIRST)),
    ended("stop", remembered(cancel()), stop(FIRST)),
    ended("cancel while it sleeps", remembered(suspend(FIRST)), cancel()),
    ended(
        "expire", remembered(requeue(FIRST), later(100.0), expires_s=50.0), store.expire(limit=9, actor=None)
    ),
    ended(
        "time_out",
        remembered(overdue(), timeout_s=1.0, attempts_max=1),
        store.time_out(limit=9, delay_s=1.0, actor=None),
    ),
    ended("crash", remembered(crashes_max=1), crash(FIRST)),
    ended("crash of a suspect", crashed_to_the_end, crash(SECOND, 2)),
    ended(
        "disown",
        remembered(requeue(FIRST), later(1_000.0)),
        disown("mail", 0, age_s=500.0, look=9, actor=None),
    ),
    Case(
        "revive after a compensation",
        remembered(fail(FIRST), cancel(UNDO)),
        revive(),
        begun_anew,
        (JOB, UNDO),
    ),
]
