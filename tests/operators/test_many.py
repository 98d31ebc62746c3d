"""Many jobs are moved together, and each has the outcome that it would have had alone."""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
import pytest

from fencerow.client import Client
from fencerow.core.model.ids import new_id
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.errors import Busy, KeyConflict
from fencerow.operators import looking
from fencerow.operators.at_once import revive_many
from fencerow.operators.many import BUSY_MAX, CancelMany, DeleteMany, JobDone, ManyMove, ReviveMany, moving
from fencerow.testing.clock import DatabaseClock
from tests.core.client.flaky import Flaky
from tests.core.store.stage import bring, rows
from tests.core.store.test_keys import ended, keyed, submit_keyed
from tests.kit.jobs import AnyEngine, claim, read, register, running, submit

losses = pytest.mark.parametrize("loss", ["lost after", "lost before"])
CANCEL = CancelMany("ada", "typo")
REVIVE = ReviveMany("ada", "fixed")


def move(engine: AnyEngine | Flaky, verb: ManyMove, *ids: str) -> dict[str, JobDone]:
    done: list[JobDone] = []
    Client(engine).run(moving(ids, verb, done))
    assert sorted(each.id for each in done) == sorted(ids), "each job has one outcome"
    return {each.id: each for each in done}


def told(found: dict[str, JobDone]) -> list[str]:
    return [each.error.code if each.error else each.outcome for each in found.values()]


def kinds(engine: AnyEngine, job_id: str) -> list[str]:
    return [event.kind for event in engine.run(looking.events(job_id))]


def test_each_of_many_is_cancelled_asked_or_refused(engine: AnyEngine) -> None:
    (queued,), busy, done, nowhere = submit(engine), running(engine), bring(engine, State.SUCCEEDED), new_id()

    found = move(engine, CANCEL, queued, busy.id, done.id, nowhere)

    assert told(found) == ["cancelled", "asked to stop", "FR-303", "FR-301"]
    (event,) = engine.run(looking.events(queued))
    assert (event.kind, event.actor, event.detail) == ("cancelled", "ada", {"reason": "typo"})
    assert kinds(engine, busy.id) == ["cancel_requested"]


def test_a_revive_that_is_bound_by_an_instant_leaves_what_has_ended_again_since(engine: AnyEngine) -> None:
    """What is left of those that are moved together is moved alone, by the same guard."""
    seen, other = bring(engine, State.FAILED), bring(engine, State.FAILED)
    at_us = engine.run(store.clock())
    bound = ReviveMany("ada", None, at_us)
    engine.run(store.revive(seen.id, actor="bob"))
    (again,) = claim(engine, holder := register(engine), limit=1)
    engine.run(store.fail([Failure(again.id, again.attempt, "{}")], holder=holder))

    found = move(engine, bound, seen.id, other.id)

    assert (found[seen.id].error is not None, found[other.id].outcome) == (True, "queued")
    assert read(engine, seen.id).state == State.FAILED
    assert kinds(engine, seen.id).count("revived") == 1


def test_only_those_that_nobody_runs_are_cancelled_if_that_was_asked(engine: AnyEngine) -> None:
    (queued,), busy = submit(engine), running(engine)

    found = move(engine, CancelMany("ada", None, only_queued=True), queued, busy.id)

    assert found[queued].outcome == "cancelled"
    assert found[busy.id].error is not None
    assert kinds(engine, busy.id) == []


def test_each_of_many_is_revived_or_refused(engine: AnyEngine) -> None:
    failed, done, (queued,) = bring(engine, State.FAILED), bring(engine, State.SUCCEEDED), submit(engine)

    found = move(engine, REVIVE, failed.id, done.id, queued)

    assert [found[each].outcome for each in (failed.id, done.id)] == ["queued", "queued"]
    assert found[queued].error is not None
    again = read(engine, failed.id)
    assert (again.state, again.failures, again.error) == (State.QUEUED, 0, None)
    event = engine.run(looking.events(failed.id))[-1]
    assert (event.kind, event.actor, event.detail["was"], event.detail["reason"]) == (
        "revived", "ada", "failed", "fixed",
    )  # fmt: skip


def test_among_many_an_ephemeral_success_stays_ended(engine: AnyEngine) -> None:
    """Its id is spent: a repeated submit must not find it live."""
    failed, spent = bring(engine, State.FAILED), bring(engine, State.SUCCEEDED)
    ephemeral = "true" if engine.dialect == "postgres" else "1"
    rows(engine, f"UPDATE {{finished_jobs}} SET ephemeral = {ephemeral} WHERE id = '{spent.id}'")

    revived = engine.run(revive_many([failed.id, spent.id], actor="ada"))

    assert [each.id for each in revived] == [failed.id]


def test_of_two_jobs_of_one_key_its_owner_is_revived(engine: AnyEngine, clock: DatabaseClock) -> None:
    old, newer = keyed(lifetime_s=10), keyed(lifetime_s=10)
    for pair in (old, newer):
        submit_keyed(engine, pair)
        ended(engine, pair[0].id)
        clock.advance(11)

    found = move(engine, REVIVE, newer[0].id, old[0].id)

    assert found[newer[0].id].outcome == "queued"
    assert isinstance(found[old[0].id].error, KeyConflict)
    owner = engine.run(store.key_owner("s", "k"))
    assert owner is not None and (owner.job_id, owner.expired) == (newer[0].id, False)


def test_only_finished_jobs_are_deleted(engine: AnyEngine) -> None:
    done, (queued,), nowhere = bring(engine, State.FAILED), submit(engine), new_id()

    found = move(engine, DeleteMany(), done.id, queued, nowhere)

    assert [found[each].outcome for each in (done.id, queued, nowhere)] == ["deleted", "left", "left"]
    assert engine.run(store.existing([done.id])) == set()
    assert engine.run(looking.events(done.id)) == []


@losses
def test_a_lost_answer_is_settled_job_by_job(engine: AnyEngine, loss: str) -> None:
    queued, failed, done = submit(engine)[0], bring(engine, State.FAILED).id, bring(engine, State.FAILED).id

    assert told(move(Flaky(engine, loss), CANCEL, queued)) == ["cancelled"]
    assert told(move(Flaky(engine, loss), REVIVE, failed)) == ["queued"]
    assert told(move(Flaky(engine, loss), DeleteMany(), done)) == ["deleted"]

    assert read(engine, queued).state is State.CANCELLED
    assert kinds(engine, failed).count("revived") == 1
    assert engine.run(store.existing([done])) == set()


class Impatient(Flaky):
    """It waits for a lock for a moment only."""

    def run(self, operation: Operation[Any]) -> Any:
        return super().run(msgspec.structs.replace(operation, patience_s=0.2))


def test_a_job_that_a_stranger_locks_is_left_and_the_others_are_moved(pg: PostgresEngine) -> None:
    locked, free = submit(pg)[0], submit(pg)[0]

    with psycopg.connect(pg.conninfo) as stranger:
        stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE", [locked])
        found = move(Impatient(pg), CANCEL, locked, free)

    assert found[free].outcome == "cancelled"
    assert isinstance(found[locked].error, Busy)
    assert read(pg, locked).state is State.QUEUED


def test_of_many_finished_jobs_those_that_a_stranger_locks_are_not_waited_for(pg: PostgresEngine) -> None:
    locked, free = bring(pg, State.FAILED).id, bring(pg, State.FAILED).id

    with psycopg.connect(pg.conninfo) as stranger:
        stranger.execute("SELECT 1 FROM fencerow.finished_jobs WHERE id = %s FOR UPDATE", [locked])
        revived = pg.run(revive_many([locked, free], actor="ada"))

    assert [each.id for each in revived] == [free]
    assert read(pg, locked).state is State.FAILED


def test_the_rest_is_left_when_strangers_lock_one_job_after_the_other(pg: PostgresEngine) -> None:
    ids, done = [submit(pg)[0] for _ in range(BUSY_MAX + 2)], list[JobDone]()

    with psycopg.connect(pg.conninfo) as stranger:
        stranger.execute("SELECT 1 FROM fencerow.jobs FOR UPDATE")
        with pytest.raises(Busy):
            Client(Impatient(pg)).run(moving(ids, CANCEL, done))

    assert [each.id for each in done] == ids[: BUSY_MAX - 1]
