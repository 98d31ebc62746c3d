"""Crashes in the operations of flows and of steps: whatever dies, who waits goes on, and what is remembered stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencerow.core.model.state import FINAL
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.errors import FencerowError
from fencerow.flows.graph import Policy
from fencerow.flows.looking import read_flow
from fencerow.flows.moving import BEFORE_ALL, BEHIND_ALL, ask_flow_cancel, live_flow_jobs, revive_portion
from fencerow.flows.removal import purge as purge_flows
from fencerow.flows.waits import any_wait_over, note_flow_wait
from fencerow.flows.waking import flows_wanted
from fencerow.operators import looking
from fencerow.steps import memory
from fencerow.steps.memory import Fencing, Remembering, Waiting
from fencerow.steps.model import Kind
from fencerow.steps.reviving import revive_from
from fencerow.steps.signals import signal, signals_of
from fencerow.steps.waker import any_wait_due, wake_due
from fencerow.testing.sweeping import sweep
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import FAR_S, Case
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    SECOND,
    THIRD_JOB,
    claim,
    fail,
    new_job,
    register,
    succeed,
    suspend,
    uid,
    with_running,
)  # fmt: skip
from tests.proof.race.test_flows import (
    ADVANCE,
    CALLBACK,
    FLOW,
    KEPT_S,
    PARENT,
    WAKE,
    has_failed,
    of_a_flow,
    one_has_ended,
    parent_waits,
    running,
)

ALL = (JOB, OTHER_JOB, THIRD_JOB)
FENCE = Fencing(JOB, FIRST, 1)
SIGNAL = uid(950)
ROUNDS = 6


def register_first() -> Script:
    yield register(FIRST)


def flow_goes_on() -> Script:
    """What workers do for flows, round after round: ends are told, and one that is new works off what is queued."""
    for number in range(ROUNDS):
        while (yield ADVANCE).moved:
            pass
        yield WAKE
        if not (yield looking.counts()):
            break
        yield later(FAR_S)
        holder = uid(500 + number)
        yield register(holder)
        yield from sweep(holder)
        for _ in range(len(ALL)):  # suspects run one at a time
            taken = yield claim(holder, limit=9)
            taken += yield store.claim_suspect("mail", holder=holder, names=["send"], margin_s=9.0)
            for job in taken:
                yield store.succeed([store.Success(job.id, job.attempt, '"done"')], holder=holder)
    flow = yield read_flow(FLOW)
    assert flow is None or flow.ended_at_us is not None, "the flow does not come to its end"


def again(*operations: Operation[Any]) -> Callable[[], Script]:
    """The caller asks once more, and takes a refusal for an answer; then all goes on."""

    def script() -> Script:
        for each in operations:
            try:
                yield each
            except FencerowError:
                pass
        yield from flow_goes_on()

    return script


def whole_or_nothing() -> Script:
    """Who submits is gone."""
    known = yield store.read_fences([*ALL, CALLBACK])
    assert len(known) in (0, len(ALL)), f"a part of a flow is stored: {sorted(known)}"
    yield from flow_goes_on()


def both_have_ended(*outcomes: str, failed: bool = False) -> Callable[[], Script]:
    def setup() -> Script:
        yield from one_has_ended(Policy.NEEDS, *outcomes, failed=failed)()
        yield succeed(FIRST, 1, OTHER_JOB)

    return setup


with_callback = both_have_ended("failed", failed=True)


def parent_is_awake() -> Script:
    """A running job, and a flow for which it will wait."""
    yield from running(None)()
    yield store.submit([new_job(PARENT)])
    yield claim(FIRST)


def parent_sleeps() -> Script:
    yield from parent_waits()
    yield suspend(FIRST, 1, PARENT)
    yield ADVANCE


NOTE = note_flow_wait(PARENT, FLOW, holder=FIRST, attempt=1)
REVIVE = revive_portion(FLOW, after=BEFORE_ALL, limit=9, begun=False, actor=None, reason=None)
BEGUN = revive_portion(FLOW, after=BEFORE_ALL, limit=1, begun=False, actor=None, reason=None)
SUBMIT = of_a_flow(Policy.AFTER, "done")

FLOW_CASES = [
    Case("submit_flow", register_first, SUBMIT, again(SUBMIT), (*ALL, CALLBACK)),
    Case("submit_flow, the caller gone", register_first, SUBMIT, whole_or_nothing, ALL, ALL),
    Case("succeed in a flow", running(), succeed(FIRST), again(succeed(FIRST)), ALL),
    Case("fail in a flow, the worker gone", running(), fail(FIRST), flow_goes_on, ALL),
    Case("advance", both_have_ended(), ADVANCE, flow_goes_on, ALL),
    Case("advance that cancels", both_have_ended(failed=True), ADVANCE, flow_goes_on, ALL),
    Case("advance with a callback", with_callback, ADVANCE, flow_goes_on, (*ALL, CALLBACK)),
    Case("flows_wanted", running(), flows_wanted(), flow_goes_on, ALL),
    Case("live_flow_jobs", running(), live_flow_jobs(FLOW, before=BEHIND_ALL, limit=9), flow_goes_on, ALL),
    Case("ask_flow_cancel", running(), ask_flow_cancel(FLOW, actor=None), flow_goes_on, ALL),
    Case("revive_portion", has_failed, REVIVE, again(REVIVE), ALL),
    Case("revive_portion, the caller gone", has_failed, REVIVE, flow_goes_on, ALL),
    Case("the first revive_portion, the caller gone", has_failed, BEGUN, flow_goes_on, ALL),
    Case("purge", has_failed, purge_flows(age_s=KEPT_S, limit=9), flow_goes_on, ALL),
    Case("note_flow_wait", parent_is_awake, NOTE, again(NOTE, suspend(FIRST, 1, PARENT)), (JOB, OTHER_JOB, PARENT)),
    Case("wake_waiters", parent_sleeps, WAKE, flow_goes_on, (JOB, OTHER_JOB, PARENT)),
    Case("any_wait_over", parent_sleeps, any_wait_over(), flow_goes_on, (JOB, OTHER_JOB, PARENT)),
]  # fmt: skip


# --- steps -------------------------------------------------------------------------------------------

DONE = Remembering(name="charge", kind=Kind.STEP, seq=1, beside=False, result='"paid"')
REMEMBER = memory.remember(FENCE, DONE)
SLEEP = memory.wait(FENCE, Waiting(name="sleep", seq=1, beside=False, delay_s=60.0))
TAKE = memory.wait(FENCE, Waiting(name="told", seq=1, beside=False, signal="go", over='{"timed_out":true}'))
SEND = signal(SIGNAL, JOB, "go", "1", actor="someone")
WAKE_DUE = wake_due(limit=9, actor=None)


def remembers(name: str, *operations: Operation[Any]) -> Callable[[], Script]:
    """The handler asks once more, or its caller does; in the end this is remembered, once."""

    def script() -> Script:
        for each in operations:
            try:
                yield each
            except FencerowError:
                pass
        assert [each.name for each in (yield memory.steps_of(JOB))] == [name]

    return script


def wakes(*operations: Operation[Any]) -> Callable[[], Script]:
    """After these the job goes on by what wakes the due, and by nothing else."""

    def script() -> Script:
        for each in operations:  # noqa: UP028 - each is sent its answer
            yield each
        yield later(FAR_S)
        yield WAKE_DUE
        fence = (yield store.read_fences([JOB]))[JOB]
        assert fence.state != "waiting" and fence.state not in FINAL, f"it is {fence.state}: nobody wakes it"

    return script


def reading(operation: Operation[Any]) -> Case:
    return Case(operation.name, with_running(), operation, remembers("charge", REMEMBER), (JOB,))


def signalled() -> Script:
    yield from with_running()()
    yield SEND


def waiting(operation: Operation[Any]) -> Callable[[], Script]:
    def setup() -> Script:
        yield from with_running()()
        yield operation
        yield suspend(FIRST)

    return setup


def is_due() -> Script:
    yield from waiting(SLEEP)()
    yield later(100.0)
    yield register(SECOND)


def finished() -> Script:
    yield from with_running()()
    yield REMEMBER
    yield fail(FIRST)


def gone() -> Script:
    """A job was removed, and what it remembered is there still."""
    yield from finished()
    yield store.delete([JOB])


def revived() -> Script:
    """Who revives asks once more. It has forgotten the step and is queued, or neither."""
    try:
        yield ANEW
    except FencerowError:
        pass
    assert not (yield memory.steps_of(JOB))
    assert (yield store.read_fences([JOB]))[JOB].state == "queued"


def both_or_neither() -> Script:
    known = [each.name for each in (yield memory.steps_of(JOB))]
    is_queued = (yield store.read_fences([JOB]))[JOB].state == "queued"
    assert is_queued != bool(known), f"it is {'' if is_queued else 'not '}queued, and remembers {known}"


def nothing_is_left() -> Script:
    yield PURGE
    assert not (yield memory.steps_of(JOB))


ANEW = revive_from(JOB, "charge", actor=None)
PURGE = memory.purge(memory.NOWHERE, limit=9)

STEP_CASES = [
    Case("remember", with_running(), REMEMBER, remembers("charge", REMEMBER), (JOB,)),
    Case("recall", with_running(), memory.recall(FENCE), remembers("charge", REMEMBER), (JOB,)),
    Case("wait for a time", with_running(), SLEEP, wakes(SLEEP, suspend(FIRST)), (JOB,)),
    Case("wait for a signal that is there", signalled, TAKE, remembers("told", TAKE), (JOB,)),
    Case("signal", with_running(), SEND, remembers("told", SEND, TAKE), (JOB,)),
    Case("signal of one that waits", waiting(TAKE), SEND, wakes(SEND), (JOB,)),
    Case("wake_due", is_due, WAKE_DUE, wakes(), (JOB,)),
    Case("any_wait_due", is_due, any_wait_due(), wakes(), (JOB,)),
    Case("revive_from", finished, ANEW, revived, (JOB,)),
    Case("revive_from, the caller gone", finished, ANEW, both_or_neither, (JOB,)),
    reading(memory.steps_of(JOB)),
    reading(memory.waiting_for(JOB)),
    reading(signals_of(JOB)),
    Case("purge", gone, PURGE, nothing_is_left),
]
