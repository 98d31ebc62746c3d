"""Who gets a turn, at keys and at limits alike: the first of all that may go, and nobody is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow import Client
from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import DatabaseClock, clock_of
from fencerow.turns import handing, looks
from fencerow.turns.handing import AGED_S, KEPT_S
from tests.core.store.stage import rows
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit
from tests.turns.test_turns import gated, hand_over, states, succeed, table_of

CLAIM_S = 60.0
KINDS = pytest.mark.parametrize("needed", [{"exclusive": "k"}, {"limits": ("a",)}], ids=["key", "limit"])


def limited(engine: AnyEngine, *limits: Limit) -> None:
    for limit in limits:
        engine.run(define(limit, actor=None, reason=None))


def swept(engine: AnyEngine) -> list[str]:
    """What the sweep of a worker gives."""
    gates = engine.run(looks.gates_after())
    engine.run(handing.take_turns_back(gates, unclaimed_s=CLAIM_S, actor="sweep"))
    return [job.id for job in engine.run(handing.hand_over(gates)).queued]


def test_the_highest_priority_goes_first_at_whichever_gate_it_waits(engine: AnyEngine) -> None:
    limited(engine, Limit("a", at_once=1), Limit("b", at_once=2), Limit("shared", at_once=1))
    submit(engine, new_job(limits=("a", "shared")))
    urgent = submit(engine, new_job(limits=("b", "shared"), priority=50))

    assert hand_over(engine) == urgent


@pytest.mark.parametrize("why", ["not due", "paused"])
def test_who_cannot_go_narrows_nobody(engine: AnyEngine, why: str) -> None:
    """One that lets nobody run beside it comes first, some day."""
    engine.run(pause_queue("closed", actor=None))
    gated(engine, priority=9, **({"delay_s": 9000.0} if why == "not due" else {"queue": "closed"}))
    three = gated(engine, 3, exclusive_at_once=3)

    assert hand_over(engine) == three


def test_a_crowd_at_a_limit_whose_key_is_taken_stands_before_nobody(engine: AnyEngine) -> None:
    limited(engine, Limit("a", at_once=2))
    before, holder = submit(engine, *(new_job(limits=("a",)) for _ in range(2))), register(engine)
    assert hand_over(engine) == before
    crowd = [new_job(exclusive="k", limits=("a",)) for _ in range(40)]
    for job in crowd:  # each comes while nobody is at the key
        engine.run(store.submit_gated([job], told=len))
    (other,) = submit(engine, new_job(limits=("a",)))
    claim(engine, holder, limit=2)
    succeed(engine, holder, before[0])
    assert hand_over(engine) == [crowd[0].id]

    succeed(engine, holder, before[1])

    assert hand_over(engine) == [other], "in one look"
    assert [read(engine, job.id).gate for job in crowd[1:]] == ["key:k"] * 39


@KINDS
def test_a_paused_queue_lets_others_go_however_many_of_its_jobs_wait(
    engine: AnyEngine, needed: dict[str, Any]
) -> None:
    limited(engine, Limit("a", at_once=1))
    submit(engine, *(new_job(**needed, queue="closed") for _ in range(1100)))
    assert len(hand_over(engine)) == 1
    (other,) = submit(engine, new_job(**needed))

    Client(engine).pause_queue("closed")

    assert hand_over(engine) == [other]


@KINDS
def test_a_turn_that_nobody_claims_goes_to_another_queue(
    engine: AnyEngine, clock: DatabaseClock, needed: dict[str, Any]
) -> None:
    limited(engine, Limit("a", at_once=1))
    held = submit(engine, new_job(**needed, queue="unserved"))
    assert hand_over(engine) == held
    other = submit(engine, new_job(**needed))
    clock.advance(CLAIM_S + 1)

    assert swept(engine) == other

    engine.run(store.cancel(other[0], actor=None))
    assert hand_over(engine) == [], "its queue is passed over for a while"
    clock.advance(CLAIM_S + 1)
    assert hand_over_due(engine) == held, "and the gate knows when that is over"


def hand_over_due(engine: AnyEngine) -> list[str]:
    """What a worker gives when it wakes because time has come."""
    assert engine.run(looks.turns_wanted()).at_once
    return [job.id for job in engine.run(handing.hand_over()).queued]


@KINDS
def test_a_resumed_queue_tells_the_gates_where_its_jobs_wait(
    engine: AnyEngine, needed: dict[str, Any]
) -> None:
    limited(engine, Limit("a", at_once=1))
    client = Client(engine)
    client.pause_queue("mail")
    ids = submit(engine, new_job(**needed))
    assert hand_over(engine) == [], "its arrival is used up"

    client.resume_queue("mail")

    assert hand_over_due(engine) == ids


@KINDS
def test_who_was_locked_is_looked_at_again(pg: PostgresEngine, needed: dict[str, Any]) -> None:
    """Whoever locked it may leave it as it was, and tell nobody."""
    limited(pg, Limit("a", at_once=1))
    ids = submit(pg, new_job(**needed))
    with pg.session() as session:
        session.connection.execute("SELECT 1 FROM fencerow.jobs FOR UPDATE")
        assert hand_over(pg) == [], "its arrival is used up"
    clock = clock_of(pg)
    clock.advance(1)

    assert hand_over_due(pg) == ids
    clock.close()


def test_a_sweep_looks_only_where_somebody_may_go(engine: AnyEngine) -> None:
    ids = [gated(engine, 1, exclusive=key)[0] for key in ("busy", "busy", "free")]
    assert hand_over(engine) == [ids[0], ids[2]]
    (lost,) = gated(engine, 1, exclusive="lost")
    rows(engine, f"DELETE FROM {table_of(engine)}")

    gates = engine.run(looks.gates_after())
    assert gates == ["key:busy", "key:lost"]
    assert engine.run(looks.gates_left(gates)) == ["key:lost"]
    assert swept(engine) == [lost]
    assert states(engine, ids) == ["queued", "waiting", "queued"]


def beside_a_stream(engine: AnyEngine, clock: DatabaseClock, rounds: int) -> int | None:
    """After how many jobs that name one of two limits one that names both, and comes first, has its turns."""
    for name in ("a", "b"):
        submit(engine, new_job(limits=(name,)), new_job(limits=(name,)))
    while hand_over(engine):
        pass
    (both,) = submit(engine, new_job(limits=("a", "b"), priority=9))
    holder = register(engine, lease_s=100_000.0)
    running: list[str] = []
    for count in range(rounds):
        clock.advance(1.0)
        running += [job.id for job in claim(engine, holder, marks=(Mark(9), Mark(0)))]
        if both in running:
            return count
        if running:  # one of a and one of b in turns, never both at once
            engine.run(store.succeed([Success(running.pop(0), 1, "1")], holder=holder))
        submit(engine, new_job(limits=("a",)), new_job(limits=("b",)))
        for _ in range(5):
            engine.run(handing.hand_over())
    return None


def test_who_needs_several_turns_gets_them_beside_those_that_need_one(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    limited(engine, Limit("a", at_once=1), Limit("b", at_once=1))

    went_before = beside_a_stream(engine, clock, 30)

    assert went_before is not None and 0 < went_before < AGED_S + 8


def test_an_end_tells_who_waits_elsewhere_and_for_whom_a_turn_is_kept(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """Nobody waits at the key then."""
    limited(engine, Limit("a", at_once=1))
    ends, holder = {}, register(engine, lease_s=100_000.0)

    def starts(*jobs: NewJob) -> list[str]:
        ids = submit(engine, *jobs)
        given = hand_over(engine)
        ends.update({each.id: each.attempt for each in claim(engine, holder)})
        return [job_id for job_id in ids if job_id in given]

    def end(job_id: str) -> None:
        engine.run(store.succeed([Success(job_id, ends[job_id], "1")], holder=holder))

    (under_a,) = starts(new_job(limits=("a",)))
    (both,) = submit(engine, new_job(exclusive="k", limits=("a",)))
    clock.advance(AGED_S + 1)
    assert hand_over(engine) == [], "it waits at the limit, and a turn of the key is kept for it"
    (wide,) = starts(new_job(exclusive="k", exclusive_at_once=2))
    end(under_a)
    assert hand_over(engine) == [], "it would be alone"

    end(wide)

    assert [*hand_over(engine), *hand_over(engine)] == [both], "the first look finds which limit it needs too"


def test_turns_are_kept_no_longer_than_a_minute(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Who holds the other limit may run for days."""
    limited(engine, Limit("a", at_once=1), Limit("b", at_once=1))
    long, first = submit(engine, new_job(limits=("b",)), new_job(limits=("a",)))
    assert sorted(hand_over(engine)) == sorted([long, first])
    claim(engine, holder := register(engine, lease_s=100_000.0))
    (both,) = submit(engine, new_job(limits=("a", "b")))
    (other,) = submit(engine, new_job(limits=("a",)))
    clock.advance(AGED_S + 1)
    engine.run(store.succeed([Success(first, 1, "1")], holder=holder))

    assert hand_over(engine) == [], "the turn of a is kept"
    clock.advance(KEPT_S)
    assert hand_over_due(engine) == [other]
    assert states(engine, [both]) == ["waiting"]
