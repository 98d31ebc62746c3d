"""Submitting, repeated submits, idempotency keys and their lifetime, reviving."""

from __future__ import annotations

import sqlite3
import threading
from uuid import uuid4

import psycopg
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.model.state import State
from fencerow.core.model.submission import SubmitResult
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import IllegalMove, JobNotFound, KeyConflict
from fencerow.operators import looking
from fencerow.retention.maintenance import REPEATED_KEPT_S
from fencerow.retention.purging import purge_by_age, purge_keys, purge_repeated, purge_spent
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.core.store import stage
from tests.core.store.stage import Placed, bring, rows, state_of
from tests.kit import asked
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, running, submit


def keyed(
    key: str = "k", *, fingerprint: str = "f" * 64, lifetime_s: float = 100.0
) -> tuple[NewJob, KeyClaim]:
    job = new_job(scope="s", key=key)
    return job, KeyClaim(scope="s", key=key, job_id=job.id, fingerprint=fingerprint, lifetime_s=lifetime_s)


def submit_keyed(engine: AnyEngine, *pairs: tuple[NewJob, KeyClaim]) -> list[SubmitResult]:
    return engine.run(asked.submit_keyed([pair[0] for pair in pairs], [pair[1] for pair in pairs]))


def ended(engine: AnyEngine, job_id: str) -> Placed:
    (job,) = claim(engine, holder := register(engine), limit=1)
    assert job.id == job_id
    engine.run(store.succeed([Success(job.id, job.attempt, "1")], holder=holder))
    return Placed(job.id, holder, job.attempt)


def test_a_submit_of_a_live_id_stores_nothing(engine: AnyEngine) -> None:
    job = new_job()
    assert engine.run(store.submit([job])) == [job.id]
    with pytest.raises((psycopg.IntegrityError, sqlite3.IntegrityError)):
        engine.run(store.submit([new_job(), job]))
    assert len(engine.run(looking.list_jobs())) == 1


def test_a_repeated_submit_leaves_a_live_id_as_it_is(engine: AnyEngine) -> None:
    job = new_job()
    assert engine.run(store.submit([job])) == [job.id]
    assert engine.run(store.resubmit([job])) == []
    assert len(engine.run(looking.list_jobs())) == 1


def test_a_repeated_submit_does_not_run_a_finished_job_again(engine: AnyEngine) -> None:
    job = new_job()
    assert engine.run(store.resubmit([job])) == [job.id]
    assert engine.run(store.resubmit([job])) == []
    ended(engine, job.id)
    other = new_job()
    assert engine.run(store.resubmit([job, other])) == [other.id]
    assert (state_of(engine, job.id), len(rows(engine, "SELECT id FROM {jobs}"))) == (State.SUCCEEDED, 1)


def test_the_same_key_and_payload_give_the_same_job(engine: AnyEngine) -> None:
    first, again = keyed(), keyed()
    assert submit_keyed(engine, first) == [SubmitResult(first[0].id)]
    assert submit_keyed(engine, first) == [SubmitResult(first[0].id)]
    assert submit_keyed(engine, again) == [SubmitResult(first[0].id, replay=True)]
    ended(engine, first[0].id)
    assert submit_keyed(engine, again) == [SubmitResult(first[0].id, replay=True)]
    assert [job.id for job in engine.run(looking.list_jobs(scope="s", key="k"))] == [first[0].id]


def test_the_same_key_with_another_payload_is_refused_and_stores_nothing(engine: AnyEngine) -> None:
    first, free, other = keyed(), keyed("free"), keyed(fingerprint="0" * 64)
    submit_keyed(engine, first)
    with pytest.raises(KeyConflict) as refused:
        submit_keyed(engine, free, other)
    assert (refused.value.job_id, refused.value.fingerprint) == (first[0].id, "f" * 64)
    assert len(engine.run(looking.list_jobs())) == 1
    assert engine.run(store.key_owner("s", "free")) is None


def test_one_batch_may_name_a_key_twice(engine: AnyEngine) -> None:
    first, again = keyed(), keyed()
    assert submit_keyed(engine, first, again) == [
        SubmitResult(first[0].id),
        SubmitResult(first[0].id, replay=True),
    ]
    with pytest.raises(KeyConflict):
        submit_keyed(engine, keyed("z"), keyed("z", fingerprint="0" * 64))


def test_a_keys_lifetime_counts_from_the_end_of_its_job(engine: AnyEngine, clock: DatabaseClock) -> None:
    first = keyed(lifetime_s=3600)
    submit_keyed(engine, first)
    clock.advance(36_000)
    assert engine.run(purge_keys(limit=10)) == 0
    ended(engine, first[0].id)
    clock.advance(3000)
    assert submit_keyed(engine, keyed()) == [SubmitResult(first[0].id, replay=True)]
    assert engine.run(purge_keys(limit=10)) == 0
    clock.advance(1200)
    owner = engine.run(store.key_owner("s", "k"))
    assert owner is not None and owner.expired

    later = keyed()
    assert submit_keyed(engine, later) == [SubmitResult(later[0].id)]
    assert engine.run(purge_keys(limit=10)) == 0


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.CANCELLED])
def test_every_end_starts_the_lifetime(engine: AnyEngine, clock: DatabaseClock, state: State) -> None:
    pair = keyed(lifetime_s=10)
    submit_keyed(engine, pair)
    if state is State.CANCELLED:
        engine.run(store.cancel(pair[0].id, actor=None))
    else:
        (job,) = claim(engine, holder := register(engine))
        placed = Placed(job.id, holder, 1)
        assert (stage.succeed if state is State.SUCCEEDED else stage.fail)(engine, placed)
    assert state_of(engine, pair[0].id) is state
    clock.advance(11)
    assert engine.run(purge_keys(limit=10)) == 1


def test_many_submitters_of_one_key_make_one_job(engine: AnyEngine) -> None:
    pairs = [keyed() for _ in range(8)]
    answers: list[SubmitResult] = []
    threads = [
        threading.Thread(target=lambda pair=pair: answers.extend(submit_keyed(engine, pair)))
        for pair in pairs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.id for answer in answers}) == 1
    assert sorted(answer.replay for answer in answers) == [False] + [True] * 7
    assert len(engine.run(looking.list_jobs())) == 1


# --- revive ----------------------------------------------------------------------------------------


def test_a_revived_job_starts_its_budgets_anew_and_goes_on_counting_attempts(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine), attempts_max=1)
    stage.fail(engine, Placed(job.id, holder, 1))
    engine.run(store.revive(job.id, actor="ada", reason="fixed"))

    found = read(engine, job.id)
    assert (found.state, found.failures, found.attempt) == (State.QUEUED, 0, 1)
    assert (found.error, found.ended_at_us, found.holder) == (None, None, None)
    assert found.revived_at_us is not None and found.args == {"to": "ada"}
    (again,) = claim(engine, holder)
    assert again.attempt == 2
    assert not stage.succeed(engine, Placed(job.id, holder, 1))
    event = engine.run(looking.events(job.id))[-1]
    assert (event.kind, event.actor, event.detail["was"]) == ("revived", "ada", "failed")
    assert event.detail["reason"] == "fixed"


@pytest.mark.parametrize("state", [State.WAITING, State.QUEUED, State.RUNNING])
def test_only_a_finished_job_is_revived(engine: AnyEngine, state: State) -> None:
    job = bring(engine, state)
    with pytest.raises(IllegalMove) as refused:
        engine.run(store.revive(job.id, actor=None))
    assert refused.value.state == state
    with pytest.raises(JobNotFound):
        engine.run(store.revive(new_id(), actor=None))


def test_a_revived_job_owns_its_key_again(engine: AnyEngine, clock: DatabaseClock) -> None:
    pair = keyed(lifetime_s=10)
    submit_keyed(engine, pair)
    ended(engine, pair[0].id)
    engine.run(store.revive(pair[0].id, actor=None))
    clock.advance(100)
    assert engine.run(purge_keys(limit=10)) == 0
    assert submit_keyed(engine, keyed()) == [SubmitResult(pair[0].id, replay=True)]
    ended(engine, pair[0].id)
    clock.advance(11)
    assert engine.run(purge_keys(limit=10)) == 1


def test_a_key_that_another_job_owns_meanwhile_forbids_the_revival(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    old = keyed(lifetime_s=10)
    submit_keyed(engine, old)
    ended(engine, old[0].id)
    clock.advance(11)
    newer = keyed()
    submit_keyed(engine, newer)

    with pytest.raises(KeyConflict) as refused:
        engine.run(store.revive(old[0].id, actor=None))
    assert refused.value.job_id == newer[0].id
    assert state_of(engine, old[0].id) is State.SUCCEEDED


def test_a_forgotten_key_stays_forgotten_at_a_revival(engine: AnyEngine, clock: DatabaseClock) -> None:
    pair = keyed(lifetime_s=10)
    submit_keyed(engine, pair)
    ended(engine, pair[0].id)
    clock.advance(11)
    assert engine.run(purge_keys(limit=10)) == 1
    engine.run(store.revive(pair[0].id, actor=None))
    assert engine.run(store.key_owner("s", "k")) is None


def test_cancelling_tells_why_it_cannot(engine: AnyEngine) -> None:
    with pytest.raises(JobNotFound):
        engine.run(store.cancel(new_id(), actor=None))
    (job_id,) = submit(engine)
    engine.run(store.cancel(job_id, actor="ada", reason="typo"))
    with pytest.raises(IllegalMove) as refused:
        engine.run(store.cancel(job_id, actor="ada"))
    assert refused.value.state == "cancelled"
    (event,) = engine.run(looking.events(job_id))
    assert (event.kind, event.actor, event.detail) == ("cancelled", "ada", {"reason": "typo"})


@pytest.mark.parametrize("ephemeral", [False, True])
def test_a_repeat_under_a_living_key_never_runs_what_retention_has_removed(
    engine: AnyEngine, clock: DatabaseClock, ephemeral: bool
) -> None:
    job = new_job(scope="s", key="k", ephemeral=ephemeral)
    key = KeyClaim(scope="s", key="k", job_id=job.id, fingerprint="f", lifetime_s=1000.0)
    engine.run(asked.submit_keyed([job], [key]))
    (claimed,) = claim(engine, holder := register(engine))
    engine.run(store.succeed([store.Success(job.id, claimed.attempt, "1")], holder=holder))
    clock.advance(100)
    assert engine.run(purge_by_age(State.SUCCEEDED, age_s=10.0, limit=9)) == (not ephemeral)
    assert engine.run(purge_spent(age_s=10.0, limit=9)) == ephemeral

    again, other = engine.run(asked.submit_keyed([job], [key])), register(engine)
    assert [each.id for each in again] == [job.id] and claim(engine, other) == []

    engine.queries = engine.queries.altered(
        "read_keys", "owned.expires_at IS NOT NULL AS ended", "false AS ended"
    )
    engine.run(asked.submit_keyed([job], [key]))
    assert claim(engine, other), "the control: nothing else keeps it from running again"


def under_own_id(engine: AnyEngine, pair: tuple[NewJob, KeyClaim]) -> SubmitResult:
    (answer,) = engine.run(asked.submit_keyed([pair[0]], [pair[1]], own={pair[0].id}))
    return answer


@pytest.mark.parametrize("purged", [True, False])
def test_a_key_whose_job_has_ended_long_ago_is_not_taken_again_for_that_job(
    engine: AnyEngine, clock: DatabaseClock, purged: bool
) -> None:
    """Taken anew it would never expire: the end that starts its lifetime has been."""
    pair = keyed(lifetime_s=10)
    submit_keyed(engine, pair)
    ended(engine, pair[0].id)
    clock.advance(11)
    if purged:
        assert engine.run(purge_keys(limit=10)) == 1

    assert under_own_id(engine, pair) == SubmitResult(pair[0].id)

    assert engine.run(store.key_owner("s", "k")) is None
    assert claim(engine, register(engine)) == []
    other = keyed(lifetime_s=10)
    assert submit_keyed(engine, other) == [SubmitResult(other[0].id)]


def test_the_control_a_key_that_is_not_given_back_answers_for_ever(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    engine.queries = engine.queries.altered(
        "give_keys_back",
        "owned.expires_at IS NULL" if engine.dialect == "postgres" else "expires_at IS NULL",
        "false",
    )
    pair = keyed(lifetime_s=10)
    submit_keyed(engine, pair)
    ended(engine, pair[0].id)
    clock.advance(11)
    under_own_id(engine, pair)
    clock.advance(1e6)

    assert engine.run(purge_keys(limit=10)) == 0
    assert engine.run(store.key_owner("s", "k")) is not None


def test_a_key_past_its_lifetime_is_taken_anew_by_the_very_id_that_had_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """Its old row would let the next submit take the key from the live job."""
    pair = keyed(lifetime_s=10)
    submit_keyed(engine, pair)
    ended(engine, pair[0].id)
    engine.run(store.delete([pair[0].id]))
    clock.advance(11)

    assert under_own_id(engine, pair) == SubmitResult(pair[0].id)
    assert submit_keyed(engine, keyed(lifetime_s=10)) == [SubmitResult(pair[0].id, replay=True)]

    assert len(rows(engine, "SELECT id FROM {jobs}")) == 1
    ended(engine, pair[0].id)
    clock.advance(11)
    assert engine.run(purge_keys(limit=10)) == 1


def test_an_id_of_the_callers_own_is_left_to_be_found_only_if_a_first_submit_may_have_had_it(
    engine: AnyEngine,
) -> None:
    """Else whoever has ids of their own for all jobs would pay a row for each."""
    ours, theirs = new_id(), str(uuid4())

    engine.run(store.resubmit([new_job(id=ours), new_job(id=theirs)], own={ours, theirs}))

    left = rows(engine, f"SELECT id FROM {stage.table(engine, 'repeated_ids')}")
    assert [str(row["id"]) for row in left] == [ours]


def test_a_submit_that_arrives_after_its_repeat_has_ended_is_refused(engine: AnyEngine) -> None:
    job = new_job()
    engine.run(store.resubmit([job]))
    ended(engine, job.id)

    for late in ([job], [new_job(), job]):
        with pytest.raises((psycopg.IntegrityError, sqlite3.IntegrityError)):
            engine.run(store.submit(late))

    assert rows(engine, "SELECT id FROM {jobs}") == []
    assert engine.run(purge_repeated(age_s=-1.0, limit=9)) == 1


def test_it_is_refused_for_a_day(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = new_job()
    engine.run(store.resubmit([job]))
    ended(engine, job.id)

    clock.advance(23.9 * 3600)
    assert engine.run(purge_repeated(age_s=REPEATED_KEPT_S, limit=9)) == 0
    with pytest.raises((psycopg.IntegrityError, sqlite3.IntegrityError)):
        engine.run(store.submit([job]))

    clock.advance(0.2 * 3600)
    assert engine.run(purge_repeated(age_s=REPEATED_KEPT_S, limit=9)) == 1


def test_nobody_looks_at_what_came_again_unless_something_has_of_late(pg: PostgresEngine) -> None:
    with pg.session() as session:
        session.connection.execute(
            "CREATE OR REPLACE FUNCTION fencerow.refuse_repeated(ids uuid[]) RETURNS boolean LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE 'looked'; END $$"
        )
    theirs = str(uuid4())

    pg.run(store.resubmit([new_job(id=theirs)], own={theirs}))
    pg.run(store.submit([new_job()]))
    pg.run(store.submit([new_job(), new_job()]))

    pg.run(store.resubmit([new_job()]))
    for late in ([new_job()], [new_job(), new_job()]):
        with pytest.raises(psycopg.errors.RaiseException, match="looked"):
            pg.run(store.submit(late))

    clock_of(pg).advance(2 * 86_400 + 1)  # its end is in whole seconds
    pg.run(store.submit([new_job()]))
