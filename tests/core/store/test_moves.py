"""Every (state, move) pair of the one table, on both engines: a legal one changes one job, an illegal one none."""

from __future__ import annotations

import inspect

import pytest

from fencerow.core.model.job import Claimed
from fencerow.core.model.state import State, WorkerState
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.core.store.reap import DEATHS_PER_CRASH
from fencerow.operators import looking
from fencerow.testing.clock import DatabaseClock
from fencerow_proof.moves import RULES, WORKER_RULES, JobMove, WorkerMove, legal
from tests.core.store import stage
from tests.core.store.stage import Placed, bring, changed, dump, play, state_of
from tests.kit.jobs import AnyEngine, bury, claim, new_job, read, register, running, submit


def test_a_legal_move_changes_one_job_and_an_illegal_one_none(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """One test for all pairs: to make the bystanders, and a job of each state, costs more than the moves."""
    stage.bystanders(engine)
    for state in State:
        job, before = bring(engine, state), None
        for move in JobMove:
            at = f"{move} of a job that is {state}"
            if move is JobMove.STOP and state is State.RUNNING:
                stage.ask(engine, job)
                before = None
            before = before or dump(engine)

            said = play(engine, clock, move, job)

            after = dump(engine)
            if legal(move, state) and move is not JobMove.RENEW:
                assert said, f"the verb says that nothing moved: {at}"
                assert changed(before, after) == {job.id}, at
                assert state_of(engine, job.id) == RULES[move].leads(state), at
                stage.only_bystanders(engine)
                job, before = bring(engine, state), None
            else:  # a renewal moves the worker's row; the same job is there for the next move
                assert said == (move is JobMove.RENEW), f"the verb claims to have moved the job: {at}"
                assert changed(before, after) == set(), at
                before = after
        stage.only_bystanders(engine)


def test_every_move_is_played(engine: AnyEngine) -> None:
    source = inspect.getsource(play)
    assert {move for move in JobMove if f"JobMove.{move.name}:" not in source} == set()


# --- what a move leads to instead ------------------------------------------------------------------


def as_placed(job: Claimed, holder: str) -> Placed:
    return Placed(job.id, holder, job.attempt)


@pytest.mark.parametrize("move", [JobMove.RETRY, JobMove.RELEASE, JobMove.SUSPEND])
def test_a_job_asked_to_cancel_does_not_return_to_its_queue(
    engine: AnyEngine, clock: DatabaseClock, move: JobMove
) -> None:
    job = bring(engine, State.RUNNING)
    stage.ask(engine, job)
    before = dump(engine)

    assert not play(engine, clock, move, job)
    assert changed(before, dump(engine)) == set()
    assert stage.stop(engine, job)
    assert state_of(engine, job.id) is State.CANCELLED
    assert State.CANCELLED in RULES[move].otherwise


def test_stop_needs_the_request(engine: AnyEngine) -> None:
    job = bring(engine, State.RUNNING)
    assert not stage.stop(engine, job)
    assert state_of(engine, job.id) is State.RUNNING


@pytest.mark.parametrize("move", [JobMove.SUCCEED, JobMove.FAIL])
def test_a_late_request_does_not_undo_an_end(engine: AnyEngine, clock: DatabaseClock, move: JobMove) -> None:
    job = bring(engine, State.RUNNING)
    stage.ask(engine, job)
    assert play(engine, clock, move, job)
    assert state_of(engine, job.id) is RULES[move].target


@pytest.mark.parametrize("move", [JobMove.CRASH, JobMove.RECLAIM, JobMove.TIMEOUT])
def test_what_is_taken_away_after_a_request_is_cancelled(
    engine: AnyEngine, clock: DatabaseClock, move: JobMove
) -> None:
    job = bring(engine, State.RUNNING)
    stage.ask(engine, job)
    before = dump(engine)

    assert play(engine, clock, move, job)
    assert changed(before, dump(engine)) == {job.id}
    assert state_of(engine, job.id) is State.CANCELLED


def test_the_first_death_only_makes_a_job_suspect(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = as_placed(running(engine, holder := register(engine), crashes_max=1), holder)
    assert stage.reclaim(engine, job, clock)

    found = read(engine, job.id)
    assert (found.state, found.suspect, found.crashes) == (State.QUEUED, True, 0)


def next_attempt(engine: AnyEngine) -> Placed:
    """The suspect is claimed by another worker."""
    (again,) = engine.run(
        store.claim_suspect("mail", holder=(holder := register(engine)), names=["send"], margin_s=60)
    )
    return as_placed(again, holder)


@pytest.mark.parametrize("crashes_max", [1, 2])
@pytest.mark.parametrize("where", ["alone in its worker", "in its child process"])
def test_a_spent_crash_budget_fails_the_job(
    engine: AnyEngine, clock: DatabaseClock, crashes_max: int, where: str
) -> None:
    job = as_placed(running(engine, holder := register(engine), crashes_max=crashes_max), holder)
    assert stage.reclaim(engine, job, clock)
    for number in range(1, crashes_max + 1):
        clock.advance(10)
        again = next_attempt(engine)
        if where == "in its child process":
            assert stage.crash(engine, again)
        else:
            assert stage.note_alone(engine, again)
            assert stage.reclaim(engine, again, clock)
        assert read(engine, job.id).crashes == number

    found = read(engine, job.id)
    assert found.state is State.FAILED
    assert found.error["code"] == "crashes_exhausted"
    assert f"crash {crashes_max} of {crashes_max}: " in found.error["message"]
    assert ("SIGKILL" in found.error["message"]) == (where == "in its child process")


def test_a_crash_waits_for_its_backoff_as_a_suspect(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = bring(engine, State.RUNNING)
    before = read(engine, job.id)
    ((taken,), moved) = engine.run(
        store.crash([store.Crash(job.id, job.attempt, 7.0, "exited with code 3")], holder=job.holder)
    )

    found = read(engine, job.id)
    assert (taken.state, moved, found.suspect, found.crashes) == (State.QUEUED, [], True, 1)
    assert found.failures == before.failures
    assert 6.0e6 < found.run_at_us - (before.claimed_at_us or 0) < 60e6
    assert taken.run_at_us == found.run_at_us
    (event,) = engine.run(looking.events(job.id))
    assert (event.kind, event.detail["reason"], event.detail["crashes"]) == (
        "crashed",
        "exited with code 3",
        1,
    )


def test_a_death_beside_others_counts_no_crash(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Nobody knows which of the jobs it was."""
    job = as_placed(running(engine, holder := register(engine), crashes_max=1), holder)
    assert stage.reclaim(engine, job, clock)
    assert stage.reclaim(engine, next_attempt(engine), clock)

    found = read(engine, job.id)
    assert (found.state, found.suspect, found.crashes) == (State.QUEUED, True, 0)


def test_what_was_noted_for_another_attempt_counts_nothing(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = as_placed(running(engine, holder := register(engine), crashes_max=1), holder)
    assert stage.note_alone(engine, job)
    assert stage.release(engine, job)
    claimed = claim(engine, later := register(engine))
    assert stage.reclaim(engine, as_placed(claimed[0], later), clock)

    assert (read(engine, job.id).state, read(engine, job.id).crashes) == (State.QUEUED, 0)


def test_a_job_under_which_worker_after_worker_dies_fails_at_last(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """Its child takes the worker along: no crash is ever counted, and it must not go on for ever."""
    job = as_placed(running(engine, holder := register(engine), crashes_max=1), holder)
    for _ in range(DEATHS_PER_CRASH - 1):
        assert stage.reclaim(engine, job, clock)
        assert read(engine, job.id).state is State.QUEUED
        job = next_attempt(engine)
    assert stage.reclaim(engine, job, clock)

    found = read(engine, job.id)
    assert (found.state, found.crashes, found.error["code"]) == (State.FAILED, 0, "crashes_exhausted")
    assert f"{DEATHS_PER_CRASH} workers in a row" in found.error["message"]


def test_an_attempt_that_came_to_an_end_makes_the_deaths_count_anew(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    job = as_placed(running(engine, holder := register(engine), crashes_max=1), holder)
    for _ in range(DEATHS_PER_CRASH - 1):
        assert stage.reclaim(engine, job, clock)
        job = next_attempt(engine)
    assert stage.retry(engine, job)
    clock.advance(10)
    claimed = claim(engine, later := register(engine))
    assert stage.reclaim(engine, as_placed(claimed[0], later), clock)

    assert read(engine, job.id).state is State.QUEUED


@pytest.mark.parametrize("attempts_max", [1, 2])
def test_a_spent_failure_budget_fails_the_job_that_hangs(
    engine: AnyEngine, clock: DatabaseClock, attempts_max: int
) -> None:
    (job_id,) = submit(engine, new_job(timeout_s=stage.TIMEOUT_S, attempts_max=attempts_max))
    for _ in range(attempts_max):
        clock.advance(5)
        (claimed,) = claim(engine, holder := register(engine))
        assert stage.time_out(engine, as_placed(claimed, holder))

    found = read(engine, job_id)
    assert (found.state, found.failures) == (State.FAILED, attempts_max)
    assert found.error["code"] == "FR-403"


# --- workers ---------------------------------------------------------------------------------------


def worker_in(engine: AnyEngine, clock: DatabaseClock, state: WorkerState | None) -> str:
    holder = register(engine, lease_s=30)
    if state is WorkerState.RETIRED:
        assert engine.run(store.retire(holder=holder))
    elif state is WorkerState.DEAD:
        clock.advance(31)
        assert bury(engine) == [holder]
    return holder


def worker(engine: AnyEngine, holder: str) -> WorkerRecord:
    (found,) = [each for each in engine.run(store.list_workers()) if each.id == holder]
    return found


def play_worker(engine: AnyEngine, clock: DatabaseClock, move: WorkerMove, holder: str) -> bool:
    match move:
        case WorkerMove.REGISTER:
            return engine.run(store.register(holder=holder, name="w", host="h", pid=2, info="{}", lease_s=9))
        case WorkerMove.RENEW:
            return engine.run(store.renew(holder=holder)) is not None
        case WorkerMove.RETIRE:
            return engine.run(store.retire(holder=holder))
        case WorkerMove.DIE:
            clock.advance(31)
            return holder in bury(engine)


@pytest.mark.parametrize(
    ("state", "move"),
    [pytest.param(state, move, id=f"{move}-{state}") for state in WorkerState for move in WorkerMove],
)
def test_a_worker_moves_as_the_table_says(
    engine: AnyEngine, clock: DatabaseClock, state: WorkerState, move: WorkerMove
) -> None:
    holder = worker_in(engine, clock, state)
    before = worker(engine, holder)

    said = play_worker(engine, clock, move, holder)

    after = worker(engine, holder)
    allowed = WORKER_RULES[move].source is state
    assert said is allowed
    assert after.state == (WORKER_RULES[move].target if allowed else state)
    if not allowed:
        assert (after.lease_until_us, after.ended_at_us, after.pid) == (
            before.lease_until_us,
            before.ended_at_us,
            before.pid,
        )


def test_a_renewal_extends_the_lease_and_touches_no_job(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = bring(engine, State.RUNNING)
    before = dump(engine)
    clock.advance(20)
    assert engine.run(store.renew(holder=job.holder))
    clock.advance(20)

    assert bury(engine) == []
    assert changed(before, dump(engine)) == set()
