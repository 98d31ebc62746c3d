"""Every operation of the store, what was before it, and what its caller does about an unknown outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencerow.clocks import ahead
from fencerow.core.model.change import NewArguments
from fencerow.core.model.state import State
from fencerow.core.model.submission import Submission
from fencerow.core.model.wanted import OrderedChange, SlotGroup, Wanted
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.errors import FencerowError
from fencerow.handovers import handovers
from fencerow.limits import Breaker, Limit, Rate, limits
from fencerow.limits.named import forget_states
from fencerow.operators import changes, looking
from fencerow.operators.at_once import cancel_many, delete_many, revive_many
from fencerow.operators.held import held_counts, held_jobs
from fencerow.operators.job_change import JobChange
from fencerow.operators.queues import pause_queue, paused_queue, paused_queues, resume_queue
from fencerow.retention.disown import disown, lanes_since
from fencerow.retention.purging import (
    forget_workers,
    purge_by_age,
    purge_by_count,
    purge_by_own_age,
    purge_keys,
    purge_repeated,
    purge_spent,
    spent_workers,
)
from fencerow.turns import affinity, handing, looks, shares
from fencerow.unique.keys import purge_unique, unique_keys_of
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case
from tests.proof.race.people import (
    FIRST,
    JOB,
    LATE_US,
    LEASE_S,
    OTHER_JOB,
    SECOND,
    THIRD,
    cancel,
    claim,
    crash,
    die,
    fail,
    keyed,
    new_job,
    note_alone,
    nothing,
    overdue,
    reclaim,
    register,
    requeue,
    revive,
    stop,
    succeed,
    suspend,
    with_jobs,
    with_running,
    with_zombie,
)  # fmt: skip
from tests.proof.race.test_handovers import (
    BOTH,
    by_id,
    confirmed,
    ended,
    failed_and_taken,
    of_the_line,
    running,
    taken,
    taken_under,
)
from tests.proof.race.test_orders import registered
from tests.proof.race.test_unique import REPLACE, unique, unique_ended, unique_queued

TIME_OUT = store.time_out(limit=10, delay_s=1.0, actor=None)
QUICKER = JobChange(priority=5, delay_s=0.0, arguments=lambda _: NewArguments('{"n":2}', 2))
CHANGE = changes.change(JOB, QUICKER, actor=None)
OVER = store.wake_whose_wait_is_over([JOB], actor=None)
FIVE_SLOTS = Wanted((SlotGroup(("mail",), 5),))


def again(operation: Operation[Any]) -> Callable[[], Script]:
    """What a repeatable operation is for. It may be told that there is nothing to do any more."""
    assert operation.repeatable, f"{operation.name} may not be repeated blindly"
    return insisting(operation)


def insisting(operation: Operation[Any]) -> Callable[[], Script]:
    """Asking again, and taking a refusal for an answer."""

    def script() -> Script:
        try:
            yield operation
        except FencerowError:
            return

    return script


def look_first(operation: Operation[Any], attempt: int = 1) -> Callable[[], Script]:
    """Ending an attempt: ask who has the job, and repeat only what is still one's own."""

    def script() -> Script:
        fence = (yield store.read_fences([JOB])).get(JOB)
        if fence is not None and (fence.state, fence.holder, fence.attempt) == (
            State.RUNNING,
            FIRST,
            attempt,
        ):
            yield operation

    return script


def suspended_and_woken() -> Script:
    """A worker that suspends a job again where it must, and what the job waits for, which comes then."""
    yield from look_first(suspend(FIRST))()
    yield store.wake([JOB], actor=None)


def looked_and_woken() -> Script:
    """A waker looks again; and at last what the job waits for comes."""
    yield OVER
    yield store.wake([JOB], actor=None)


def suspended() -> Script:
    """A setup: the job is suspended."""
    yield from with_running()()
    yield suspend(FIRST)


def unknown_jobs() -> Script:
    """A claim: running jobs that the worker does not know are let go."""
    for held in (yield store.holdings(holder=FIRST)):
        let_go = stop if held.cancel_requested else released
        yield let_go(FIRST, held.attempt, held.id)


def released(holder: str, attempt: int, job_id: str) -> Operation[Any]:
    return requeue(holder, attempt, "released", job_id)


def unique_again() -> Script:
    yield unique(JOB, again=True)


def replaced_again() -> Script:
    yield unique(OTHER_JOB, REPLACE, again=True)


def submit_again() -> Script:
    yield store.resubmit([new_job(), new_job(OTHER_JOB)])


# --- what was before ---------------------------------------------------------------------------


def workers() -> Script:
    yield register(FIRST)


def asked() -> Script:
    yield from with_running()()
    yield cancel()


def finished() -> Script:
    yield from with_running()()
    yield succeed(FIRST)


def spent() -> Script:
    yield from with_running(new_job(ephemeral=True))()
    yield succeed(FIRST)


def repeated_long_ago() -> Script:
    yield from workers()
    yield store.resubmit([new_job()])
    yield later(100.0)


def unmoved() -> Script:
    """A job that has failed and lies among the live ones still."""
    yield from with_running()()
    yield fail_in_place(FIRST)


def fail_in_place(holder: str) -> Operation[Any]:
    return store.fail_in_place([store.Failure(JOB, 1, '{"code":"outcome_refused"}')], holder=holder)


def finished_keyed() -> Script:
    yield register(FIRST)
    yield keyed(JOB)
    yield claim(FIRST)
    yield succeed(FIRST)


def expired_keyed() -> Script:
    yield from finished_keyed()
    yield later(100.0)


def finished_long_ago(**fields: Any) -> Callable[[], Script]:
    def script() -> Script:
        yield from with_running(new_job(**fields))()
        yield succeed(FIRST)
        yield later(7200.0)

    return script


def first_expired() -> Script:
    yield from with_running(new_job(), new_job(OTHER_JOB))()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def clock_went_back() -> Script:
    yield from with_running()()
    yield later(-3600.0)
    yield store.renew(holder=SECOND)


def die_ahead() -> Operation[Any]:
    """With the renewal of FIRST that it finds there: what a judge sees, a lease earlier."""

    def steps() -> Any:
        found = yield from store.leases_ahead().steps()
        return (yield from store.die_ahead(found, judge=SECOND, until_us=LATE_US).steps())

    return Operation("die_ahead", steps, writes="workers")


def first_dead() -> Script:
    yield from first_expired()
    yield die(SECOND)


def suspect_queued() -> Script:
    yield from with_zombie()


def crashed_to_the_end() -> Script:
    """A suspect at the end of its crash budget, running under a dead holder."""
    yield from with_jobs(new_job(crashes_max=1))()
    yield claim(FIRST)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)
    yield reclaim(FIRST)
    yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
    yield note_alone(SECOND, 2)
    yield later(LEASE_S + 1)
    yield register(THIRD)
    yield die(THIRD)


def cancelled_under_the_dead() -> Script:
    yield from with_running()()
    yield cancel()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def called_overdue(attempts_max: int, *, begun: bool = True) -> Callable[[], Script]:
    def script() -> Script:
        yield from with_jobs(new_job(timeout_s=1.0, attempts_max=attempts_max))()
        yield claim(FIRST)
        yield overdue(begun=begun)

    return script


def nobody_waits() -> Script:
    yield from with_jobs(new_job(expires_s=5.0), new_job(OTHER_JOB))()
    yield later(10.0)


def nobody_knows() -> Script:
    yield from with_jobs(new_job(), new_job(OTHER_JOB))()
    yield later(1_000.0)


def lost_holder() -> Script:
    """A restore: the job runs under a holder that has no row."""
    yield from with_running()()
    yield store.retire(holder=FIRST)
    yield later(100.0)


def taking_orders() -> Script:
    yield registered(FIRST)
    yield register(SECOND)
    yield store.submit([new_job()])
    yield claim(FIRST)


def order_again() -> Script:
    """An operator whose answer was lost asks again: there is one order, whether the first was written or not."""
    order = yield from store.ordering(FIRST, OrderedChange(slots=5), actor="someone")
    assert (order.version, order.wanted) == (1, FIVE_SLOTS)


def ordered() -> Script:
    yield from taking_orders()
    yield ORDER


def dead_and_ordered() -> Script:
    yield from ordered()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def claim_two() -> Operation[Any]:
    return claim(FIRST, 2)


SHARED = (new_job(share="a"), new_job(OTHER_JOB, share="b"))


def with_shares() -> Script:
    yield from workers()
    yield store.submit(SHARED)


def with_weight() -> Script:
    yield from with_shares()
    yield shares.weigh_share("mail", "a", 3, actor=None)


def in_turn() -> Operation[Any]:
    lanes = [store.Mark(0, lane=f"share:{share}", count=1) for share in "ab"]
    return store.claim("mail", lanes, holder=FIRST, names=["send"], limit=2, margin_s=10.0)


LABELLED = (new_job(affinity="gpu"), new_job(OTHER_JOB, affinity="gpu", affinity_wait_s=5.0))


def with_labelled() -> Script:
    yield from workers()
    yield store.submit_gated(LABELLED)


def with_waits_over() -> Script:
    yield from with_labelled()
    yield later(6)


def by_label() -> Operation[Any]:
    lanes = [store.Mark(0, lane="label:gpu"), store.Mark(0)]
    return store.claim("mail", lanes, holder=FIRST, names=["send"], limit=2, margin_s=10.0)


def reading(operation: Operation[Any]) -> Case:
    return Case(operation.name, with_running(), operation, again(operation), (JOB,))


def ending(name: str, operation: Operation[Any], setup: Callable[[], Script] | None = None) -> Case:
    return Case(name, setup or with_running(), operation, look_first(operation), (JOB,))


def repeated(name: str, setup: Callable[[], Script], operation: Operation[Any], *jobs: str) -> Case:
    return Case(name, setup, operation, again(operation), jobs)


def swept(
    name: str, setup: Callable[[], Script], operation: Operation[Any], *jobs: str, gone: bool = False
) -> Case:
    return Case(name, setup, operation, nothing, jobs, jobs if gone else ())


TWO = (new_job(), new_job(OTHER_JOB))
FOLLOWED = store.succeed_with_follow_ups(
    [store.FollowedSuccess(store.Success(JOB, 1, '"done"'), [Submission(new_job(OTHER_JOB))])], holder=FIRST
)
GATED = (new_job(exclusive="k", exclusive_at_once=2), new_job(OTHER_JOB, exclusive="k", exclusive_at_once=2))
ORDER = store.order_worker(FIRST, FIVE_SLOTS, version=0, actor="someone")
# The second needs turns at two gates.
LIMITED = (new_job(limits=("b",)), new_job(OTHER_JOB, limits=("a", "b")))


def waiting() -> Script:
    yield from workers()
    yield store.submit_gated(GATED)


def waiting_under_limits() -> Script:
    yield from workers()
    for name in ("a", "b"):
        yield limits.define(Limit(name, at_once=2, rate=Rate(1, burst=9)), actor=None, reason=None)
    yield store.submit_gated(LIMITED)


def broken_under_limits() -> Script:
    """One has failed, which opens the breaker; another has a turn that it has not used."""
    yield from workers()
    yield limits.define(Limit("a", breaker=Breaker(1, 60, stop_s=1.0)), actor=None, reason=None)
    yield store.submit_gated([new_job(limits=("a",))])
    yield handing.hand_over()
    yield claim(FIRST)
    yield store.submit_gated([new_job(OTHER_JOB, limits=("a",))])
    yield handing.hand_over()
    yield fail(FIRST)


def paused_turn() -> Script:
    """One of a paused queue has the turn for which one of another queue waits."""
    yield from workers()
    yield store.submit_gated([new_job(exclusive="k"), new_job(OTHER_JOB, exclusive="k", queue="else")])
    yield handing.hand_over()
    yield pause_queue("mail", actor="ada")


def one_of_a_key_runs() -> Script:
    """The next of its key waits."""
    yield register(FIRST)
    yield store.submit_gated([new_job(exclusive="k"), new_job(OTHER_JOB, exclusive="k")])
    yield handing.hand_over()
    yield claim(FIRST)


def idle_gates() -> Script:
    """Nobody waits at one of them; the same jobs come there later."""
    yield from workers()
    yield handing.hand_over(["key:k", "key:other"])


def idle_states() -> Script:
    """Somebody started under the key of a limit, long ago."""
    yield from workers()
    yield limits.define(Limit("a", rate=Rate(1), per_key=True), actor=None, reason=None)
    yield store.submit_gated([new_job(limits=("a/x",))])
    yield handing.hand_over()
    yield later(100.0)
    yield register(FIRST)


def written_ahead() -> Script:
    """While the clock stood an hour ahead, one at once and one that waits at its gate."""
    yield from workers()
    yield later(3600.0)
    yield store.submit_gated([new_job(), new_job(OTHER_JOB, exclusive="k")])
    yield later(-3600.0)


def move_back() -> Operation[Any]:
    """With what a look finds: what a worker sees, an instant earlier."""

    def steps() -> Any:
        part = yield from ahead.find_ahead(ahead.FIRST, reached_us=0, limit=10).steps()
        return (yield from ahead.move_back(part.ahead, reached_us=0, actor="w").steps())

    return Operation("move_back", steps)


def moved_and_given() -> Script:
    """The next look, of whichever worker."""
    yield move_back()
    yield from turns_given()


def ended_and_given() -> Script:
    """SQLite leaves the turn to a look."""
    yield from look_first(PASSED_ON)()
    yield handing.hand_over()


PASSED_ON = store.succeed_first([store.Success(JOB, 1, '"done"')], holder=FIRST)
TURN_BACK = handing.take_turns_back(["key:k"], unclaimed_s=None)


def resumed() -> Script:
    """The queue was paused when its jobs came to their gates, and nobody has told the gates that it is not."""
    yield from workers()
    yield pause_queue("mail", actor="ada")
    yield store.submit_gated(APART)  # of two keys: nobody looks for the next of one once the other has ended
    yield handing.hand_over()
    yield resume_queue("mail")


def told_and_given() -> Script:
    """Nobody looks where no arrival tells."""
    yield looks.tell_gates("mail")
    yield handing.hand_over()


def turns_back_and_given() -> Script:
    """The queue goes on, and who waited in another one is cancelled: nobody here serves that."""
    yield TURN_BACK
    yield resume_queue("mail")
    yield store.cancel(OTHER_JOB, actor="ada")
    yield from turns_given()


def turns_given() -> Script:
    """What the sweep does, whatever arrivals tell."""
    yield handing.hand_over((yield looks.gates_after()))


def stopped_and_given() -> Script:
    """The breaker is told of, and its time goes by."""
    yield from turns_given()
    yield later(2.0)
    yield from turns_given()


def gated_again() -> Script:
    yield store.resubmit(GATED)
    yield from turns_given()


APART = (new_job(exclusive="j"), new_job(OTHER_JOB, exclusive="k"))


def apart_again() -> Script:
    yield store.resubmit(APART)
    yield from turns_given()


LINED = tuple(of_the_line(each) for each in BOTH)
TAKER = "00000000-0000-4000-8000-000000000999"
TAKE = handovers.take(handovers.TakeOf("bot", TAKER, 60.0), limit=2)


def lined_again() -> Script:
    yield store.resubmit(LINED)


def labelled_again() -> Script:
    yield store.resubmit(LABELLED)


def passed_over() -> Operation[Any]:
    return store.claim_passed_over("mail", 0, holder=FIRST, names=["send"], margin_s=10.0, wait_ms=60_000)


# SQLite has no COPY, and no locked row that a claim passes over.
ON_POSTGRES: list[Case] = [
    Case("claim_passed_over", with_jobs(new_job()), passed_over(), unknown_jobs, (JOB,)),
    Case("submit_by_copy", workers, store.submit_by_copy(TWO), submit_again, (JOB, OTHER_JOB)),
    Case("submit_with_turn", workers, store.submit_with_turn(APART[0], told=len), apart_again, (JOB,)),
]

CASES: list[Case] = [
    # submit
    Case("submit", workers, store.submit(TWO), submit_again, (JOB, OTHER_JOB)),
    repeated("resubmit", workers, store.resubmit(TWO), JOB, OTHER_JOB),
    repeated("resubmit of a finished job", finished, store.resubmit(TWO), JOB, OTHER_JOB),
    repeated("submit_keyed", workers, keyed(JOB), JOB),
    repeated("submit_keyed, a replay", finished_keyed, keyed(OTHER_JOB), JOB),
    repeated("submit_keyed, the key expired", expired_keyed, keyed(OTHER_JOB), JOB, OTHER_JOB),
    # unique jobs
    Case("submit_unique", workers, unique(JOB), unique_again, (JOB,)),
    Case("submit_unique, replacing", unique_queued, unique(OTHER_JOB, REPLACE), replaced_again, (JOB,)),
    repeated("resubmit_unique", workers, unique(JOB, again=True), JOB),
    repeated("resubmit_unique, replacing", unique_queued, unique(OTHER_JOB, REPLACE, again=True), JOB),
    repeated(
        "resubmit_unique, its job finished", unique_ended, unique(OTHER_JOB, again=True), JOB, OTHER_JOB
    ),
    swept("purge_unique", unique_ended, purge_unique(("", ""), limit=10), JOB),
    reading(unique_keys_of([JOB])),
    # turns
    Case("submit_gated", workers, store.submit_gated(GATED), gated_again, (JOB, OTHER_JOB)),
    Case("submit_gated, with turns", workers, store.submit_gated(APART, told=len), apart_again, BOTH),
    Case("hand_over", waiting, handing.hand_over(), turns_given, (JOB, OTHER_JOB)),
    *(
        Case(f"{passed.name} that passes its turn on", one_of_a_key_runs, passed, ended_and_given, BOTH)
        for passed in (PASSED_ON, store.succeed_alone([store.Success(JOB, 1, '"done"')], holder=FIRST))
    ),
    Case("hand_over under limits", waiting_under_limits, handing.hand_over(), turns_given, (JOB, OTHER_JOB)),
    Case(
        "hand_over that a breaker stops",
        broken_under_limits,
        handing.hand_over(),
        stopped_and_given,
        (JOB, OTHER_JOB),
    ),
    Case("take_turns_back", paused_turn, TURN_BACK, turns_back_and_given, (JOB, OTHER_JOB)),
    Case("tell_gates", resumed, looks.tell_gates("mail"), told_and_given, (JOB, OTHER_JOB)),
    Case("tell_gates that nobody repeats", resumed, looks.tell_gates("mail"), turns_given, (JOB, OTHER_JOB)),
    reading(looks.gates_after()),
    reading(looks.gates_left(["key:k"])),
    reading(looks.turns_wanted()),
    reading(looks.any_soon()),
    reading(affinity.next_fall_back()),
    reading(store.unaware_workers("exclusive")),
    # written while the clock stood ahead
    Case("move_back", written_ahead, move_back(), moved_and_given, (JOB, OTHER_JOB)),
    reading(ahead.find_ahead(ahead.FIRST, reached_us=0, limit=10)),
    reading(ahead.clock_reached()),
    reading(affinity.next_fall_back()),
    # handovers; `mend` heals what no case may begin with: tests/proof/race/test_handovers.py breaks it off
    Case("submit_gated, to be handed over", workers, store.submit_gated(LINED), lined_again, BOTH),
    repeated("resubmit, to be handed over", workers, store.resubmit(LINED), *BOTH),
    Case("succeed of the first of a line", running, succeed(FIRST), look_first(succeed(FIRST)), BOTH),
    Case("fail of the first of a line", running, fail(FIRST), look_first(fail(FIRST)), BOTH),
    swept("succeed of the first of a line, the worker gone", running, succeed(FIRST), *BOTH),
    repeated("take", ended, TAKE, *BOTH),
    repeated("confirm", taken, by_id(), *BOTH),
    repeated(
        "release", taken_under(TAKER), handovers.release(JOB, holder=TAKER, token=1, delay_s=0.0), *BOTH
    ),
    repeated("purge", confirmed, handovers.purge(0, age_s=0.0, limit=9), OTHER_JOB),
    swept("revive of what was handed over", failed_and_taken, revive(), JOB),
    reading(handovers.read(JOB)),
    reading(handovers.next_in_us("bot")),
    # claim
    Case("claim", with_jobs(*TWO), claim_two(), unknown_jobs, (JOB, OTHER_JOB)),
    swept("claim, the worker gone", with_jobs(*TWO), claim_two(), JOB, OTHER_JOB),
    Case("claim of shares", with_shares, in_turn(), unknown_jobs, (JOB, OTHER_JOB)),
    # affinity
    Case(
        "submit_gated with affinity", workers, store.submit_gated(LABELLED), labelled_again, (JOB, OTHER_JOB)
    ),
    Case("claim by label", with_labelled, by_label(), unknown_jobs, (JOB, OTHER_JOB)),
    repeated("fall_back", with_waits_over, affinity.fall_back(actor="worker"), OTHER_JOB),
    repeated("weigh_share", with_shares, shares.weigh_share("mail", "a", 3, actor=None), JOB, OTHER_JOB),
    repeated("forget_weight", with_weight, shares.forget_weight("mail", "a"), JOB, OTHER_JOB),
    reading(shares.read_shares()),
    reading(store.ring("mail", 0, "", "", names=["send"], limit=10)),
    swept(
        "claim_suspect",
        suspect_queued,
        store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=9.0),
        JOB,
    ),
    # ends
    ending("succeed", succeed(FIRST)),
    Case("succeed_with_follow_ups", with_running(), FOLLOWED, look_first(FOLLOWED), (JOB, OTHER_JOB)),
    swept("succeed_with_follow_ups, the worker gone", with_running(), FOLLOWED, JOB),
    ending("fail", fail(FIRST)),
    ending("requeue, retried", requeue(FIRST, 1, "retried")),
    ending("requeue, snoozed", requeue(FIRST, 1, "snoozed")),
    ending("requeue, released", requeue(FIRST, 1, "released")),
    Case("suspend", with_running(), suspend(FIRST), suspended_and_woken, (JOB,)),
    repeated("wake", suspended, store.wake([JOB], actor=None), JOB),
    Case("wake_whose_wait_is_over", suspended, OVER, looked_and_woken, (JOB,)),
    ending("stop", stop(FIRST), asked),
    ending("crash", crash(FIRST)),
    ending("crash, the crash budget spent", crash(FIRST), with_running(new_job(crashes_max=1))),
    ending("crash, a cancel asked", crash(FIRST), asked),
    swept("crash, the worker gone", with_running(), crash(FIRST), JOB),
    swept("succeed, the worker gone", with_running(), succeed(FIRST), JOB),
    Case(
        "succeed of an ephemeral job",
        with_running(new_job(ephemeral=True)),
        succeed(FIRST),
        look_first(succeed(FIRST)),
        (JOB,),
        (JOB,),
    ),
    repeated("resubmit of a spent job", spent, store.resubmit([new_job(ephemeral=True)])),
    ending("fail_in_place", fail_in_place(FIRST)),
    swept("move_late", unmoved, store.move_late(JOB), JOB),
    swept("fail, the worker gone", with_running(), fail(FIRST), JOB),
    swept("stop, the worker gone", asked, stop(FIRST), JOB),
    # moves
    Case("cancel of a queued job", with_jobs(), cancel(), insisting(cancel()), (JOB,)),
    Case("cancel of a running job", with_running(), cancel(), insisting(cancel()), (JOB,)),
    swept("cancel, nobody repeats it", with_jobs(), cancel(), JOB),
    swept("disown", nobody_knows, disown("mail", 0, age_s=500.0, look=9, actor=None), JOB, OTHER_JOB),
    swept("expire", nobody_waits, store.expire(limit=10, actor=None), JOB, OTHER_JOB),
    swept("revive", finished, revive(), JOB),
    swept("revive of a keyed job", expired_keyed, revive(), JOB),
    swept("delete", finished, store.delete([JOB]), JOB, gone=True),
    Case(
        "cancel of many",
        with_jobs(*TWO),
        cancel_many([JOB, OTHER_JOB], actor=None),
        insisting(cancel_many([JOB, OTHER_JOB], actor=None)),
        (JOB, OTHER_JOB),
    ),
    Case("change", with_jobs(), CHANGE, insisting(CHANGE), (JOB,)),
    swept("change, nobody repeats it", with_jobs(), CHANGE, JOB),
    swept(
        "change of many",
        with_jobs(*TWO),
        changes.change_many([JOB, OTHER_JOB], QUICKER, actor=None),
        JOB,
        OTHER_JOB,
    ),
    swept("revive of many", finished, revive_many([JOB], actor=None), JOB),
    swept("revive of many, keyed", expired_keyed, revive_many([JOB], actor=None), JOB),
    swept("delete of many", finished, delete_many([JOB]), JOB, gone=True),
    # notes
    repeated(
        "progress", with_running(), store.progress(JOB, holder=FIRST, attempt=1, percent=1.0, note="n"), JOB
    ),
    swept("log", with_running(), store.log(JOB, holder=FIRST, attempt=1, level="INFO", message="m"), JOB),
    repeated("note_alone", with_running(), note_alone(FIRST), JOB),
    swept("note_alone, the worker gone", with_running(), note_alone(FIRST), JOB),
    repeated("mark_awaited", with_running(), store.mark_awaited([JOB]), JOB),
    # queues
    repeated("pause_queue", with_jobs(), pause_queue("mail", actor=None), JOB),
    repeated("resume_queue", with_jobs(), resume_queue("mail"), JOB),
    # workers, their orders, and reaping
    Case("order_worker", taking_orders, ORDER, order_again, (JOB,)),
    swept("order_worker, the operator gone", taking_orders, ORDER, JOB),
    swept("order_worker of a dead one", dead_and_ordered, ORDER, JOB),
    swept("register, an order taken along", dead_and_ordered, registered(THIRD, FIRST), JOB),
    swept("register", with_running(), register(THIRD), JOB),
    repeated("renew", with_running(), store.renew(holder=FIRST), JOB),
    repeated("describe_worker", with_running(), store.describe_worker(holder=FIRST, info='{"n":1}'), JOB),
    repeated("last_renewal", with_running(), store.last_renewal(holder=FIRST), JOB),
    repeated("server_identity", with_running(), store.server_identity(), JOB),
    repeated("retire", with_running(), store.retire(holder=FIRST), JOB),
    swept("die", first_expired, die(SECOND), JOB, OTHER_JOB),
    repeated("leases_ahead", clock_went_back, store.leases_ahead(), JOB),
    swept("die_ahead", clock_went_back, die_ahead(), JOB),
    repeated("adopt", lost_holder, store.adopt([FIRST]), JOB),
    swept("forget_workers", lost_holder, forget_workers([FIRST], age_s=10.0), JOB),
    swept("reclaim", first_dead, reclaim(FIRST), JOB, OTHER_JOB),
    swept("reclaim, the crash budget spent", crashed_to_the_end, reclaim(FIRST, SECOND), JOB),
    swept("reclaim, a cancel asked", cancelled_under_the_dead, reclaim(FIRST), JOB),
    swept("time_out", called_overdue(3), TIME_OUT, JOB),
    swept("time_out, the budget spent", called_overdue(1), TIME_OUT, JOB),
    swept("time_out of what never began", called_overdue(1, begun=False), TIME_OUT, JOB),
    # retention
    swept(
        "purge_by_age",
        finished_long_ago(),
        purge_by_age(State.SUCCEEDED, age_s=9.0, limit=9),
        JOB,
        gone=True,
    ),
    swept(
        "purge_by_own_age",
        finished_long_ago(retention_s=9.0),
        purge_by_own_age(limit=9),
        JOB,
        gone=True,
    ),
    swept(
        "purge_by_count",
        finished_long_ago(),
        purge_by_count(State.SUCCEEDED, keep=1, limit=9),
        JOB,
        gone=True,
    ),
    swept(
        "purge_spent",
        finished_long_ago(ephemeral=True),
        purge_spent(age_s=9.0, limit=9),
        JOB,
        gone=True,
    ),
    swept("purge_repeated", repeated_long_ago, purge_repeated(age_s=9.0, limit=9), JOB),
    Case("forget_gates", idle_gates, looks.forget_gates("", limit=9), gated_again, (JOB, OTHER_JOB)),
    swept("forget_states", idle_states, forget_states("", age_s=9.0, limit=9), JOB),
    swept("purge_keys", expired_keyed, purge_keys(limit=9), JOB),
    # reads
    *(
        reading(operation)
        for operation in (
            store.lanes("mail"),
            store.fetch_args(JOB, holder=FIRST, attempt=1),
            store.read_fences([JOB]),
            store.unmoved(limit=9),
            store.check_fence(JOB, holder=FIRST, attempt=1),
            store.hold_fence(JOB, holder=FIRST, attempt=1),
            store.bound_idle(JOB),
            store.any_due(["mail"], ["send"], ["gpu"]),
            lanes_since("mail", age_s=500.0),
            paused_queue("mail"),
            paused_queues(),
            store.read([JOB]),
            store.key_owner("s", "k"),
            looking.list_jobs(),
            looking.search(tags='["a"]', metadata='{"a":1}'),
            store.outcomes([JOB]),
            store.existing([JOB]),
            looking.events(JOB),
            store.releases(JOB, reason="mutex"),
            looking.logs(JOB),
            looking.counts(),
            looking.finished_counts(),
            looking.ahead(JOB),
            store.clock(),
            store.dead_holders(),
            store.lost_holders(),
            spent_workers(age_s=10.0),
            store.holdings(holder=FIRST),
            held_jobs(FIRST),
            held_counts([FIRST]),
            store.list_workers(),
        )
    ),
]
