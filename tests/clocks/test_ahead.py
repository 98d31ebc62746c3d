"""Jobs that were written while the database's clock stood ahead, and nobody read it: they are found and moved back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from fencerow.clocks import chore as ahead
from fencerow.clocks.ahead import FIRST, AheadJob, clock_reached, find_ahead, move_back
from fencerow.config import Config
from fencerow.core.model.lane import ANYBODYS
from fencerow.core.model.wakeup import Queued
from fencerow.core.model.wanted import Stated
from fencerow.core.store import store
from fencerow.core.store.attempts import Requeue
from fencerow.core.store.hints import in_lanes
from fencerow.db.clock import CarriedClock
from fencerow.db.steady import steady
from fencerow.operators import changes, looking
from fencerow.operators.job_change import JobChange
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing
from tests.core.store.stage import rows
from tests.core.worker.stage import job_of, quick, working
from tests.kit.jobs import (
    AnyEngine,
    bury,
    claim,
    new_job,
    overdue,
    read,
    register,
    running,
    submit,
)
from tests.kit.sites import site_of

HOUR_S = 3600.0
DELAY_S = 300.0
SOON_S = 60.0  # a test may take so long
ERROR = '{"type":"Boom"}'


def now_us(engine: AnyEngine) -> int:
    return engine.run(store.clock())


def moved(engine: AnyEngine, reached_us: int = 0, *, look: bool = True) -> list[str]:
    """What a look at all jobs moves back; or, without it, what moving all of them does."""
    found = engine.run(find_ahead(FIRST, reached_us=reached_us, limit=100)).ahead
    if not look:
        ids = [str(row["id"]) for row in rows(engine, "SELECT id FROM {jobs}")]
        found = [AheadJob(each.id, each.run_at_us) for each in engine.run(store.read(ids)).values()]
    back = engine.run(move_back(found, reached_us=reached_us, actor="w"))
    assert not look or {job.id for job in found} == {job.id for job in back}, "it finds what it moves"
    return [job.id for job in back]


def due_in_s(engine: AnyEngine, job_id: str) -> float:
    return (read(engine, job_id).run_at_us - now_us(engine)) / 1e6


def test_what_was_moved_is_told_in_its_lane(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(HOUR_S)
    (job_id,) = submit(engine)
    clock.advance(-HOUR_S)
    found = engine.run(find_ahead(FIRST, reached_us=0, limit=100)).ahead

    back = engine.run(move_back(found, reached_us=0, actor="w"))

    (told,) = in_lanes(back)
    assert told.lane == read(engine, job_id).lane == ANYBODYS


def test_what_was_to_be_done_at_once_is_due_now(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(HOUR_S)
    (job_id,) = submit(engine)
    clock.advance(-HOUR_S)

    assert moved(engine) == [job_id]

    assert [job.id for job in claim(engine, register(engine))] == [job_id]
    assert [each.kind for each in engine.run(looking.events(job_id))] == ["moved_back"]


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S, 0.0])
def test_what_was_scheduled_on_purpose_stays_where_it_is(
    engine: AnyEngine, clock: DatabaseClock, ahead_s: float
) -> None:
    (job_id,) = submit(engine, new_job(run_at_us=now_us(engine) + round(2 * HOUR_S * 1e6)))
    was = read(engine, job_id)
    clock.advance(ahead_s)
    clock.advance(-ahead_s)

    assert moved(engine, look=False) == []
    assert read(engine, job_id) == was


def test_a_delay_is_kept_and_nothing_is_moved_twice(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(HOUR_S)
    (job_id,) = submit(engine, new_job(delay_s=DELAY_S))
    clock.advance(-HOUR_S)

    assert moved(engine) == [job_id]

    assert DELAY_S - SOON_S < due_in_s(engine, job_id) <= DELAY_S
    assert moved(engine, look=False) == []


@pytest.mark.parametrize("kind", ["retried", "snoozed", "crashed", "timed_out", "changed", "revived"])
def test_a_delay_that_was_written_later_is_kept_as_well(
    engine: AnyEngine, clock: DatabaseClock, kind: str
) -> None:
    """The job was submitted and claimed before: only its timeline, or its revival, says when the delay began."""
    if kind == "changed":
        (job_id,) = submit(engine)
        clock.advance(HOUR_S)
        engine.run(changes.change(job_id, JobChange(delay_s=DELAY_S), actor="ada"))
    else:
        job = running(engine, holder := register(engine, lease_s=1e6), timeout_s=1.0)
        job_id = job.id
        clock.advance(HOUR_S)
        _come_back(engine, kind, job_id, holder)
    clock.advance(-HOUR_S)

    assert moved(engine) == [job_id]

    delay_s = 0.0 if kind == "revived" else DELAY_S
    assert delay_s - SOON_S < due_in_s(engine, job_id) <= delay_s
    assert moved(engine, look=False) == []


def _come_back(engine: AnyEngine, kind: str, job_id: str, holder: str) -> None:
    if kind == "crashed":
        assert engine.run(store.crash([store.Crash(job_id, 1, DELAY_S, "killed")], holder=holder))
    elif kind == "timed_out":
        engine.run(store.renew(holder=holder, stated=overdue((job_id, 1, True))))
        taken, _ = engine.run(store.time_out(limit=10, delay_s=DELAY_S, actor="reaper"))
        assert [job.id for job in taken] == [job_id]
    elif kind == "revived":
        assert engine.run(store.fail([store.Failure(job_id, 1, ERROR)], holder=holder))
        engine.run(store.revive(job_id, actor="ada"))
    else:
        back = Requeue(id=job_id, attempt=1, kind=kind, delay_s=DELAY_S)
        assert engine.run(store.requeue([back], holder=holder))


@pytest.mark.parametrize("kind", ["claimed", "revived"])
def test_nothing_that_was_written_ahead_moves_it_again(
    engine: AnyEngine, clock: DatabaseClock, kind: str
) -> None:
    (job_id,) = submit(engine)
    clock.advance(HOUR_S)
    claim(engine, holder := register(engine))
    if kind == "revived":
        assert engine.run(store.fail([store.Failure(job_id, 1, ERROR)], holder=holder))
        engine.run(store.revive(job_id, actor="ada"))
        rows(engine, "UPDATE {jobs} SET claimed_at = submitted_at")
        engine.run(changes.change(job_id, JobChange(delay_s=DELAY_S), actor="ada"))
    else:
        again = Requeue(id=job_id, attempt=1, kind="retried", delay_s=DELAY_S)
        assert engine.run(store.requeue([again], holder=holder))
    clock.advance(-HOUR_S)

    assert moved(engine) == [job_id]

    assert DELAY_S - SOON_S < due_in_s(engine, job_id) <= DELAY_S
    assert moved(engine, look=False) == []


def test_what_was_claimed_then_and_came_back_is_due_as_before(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """A worker had it for a moment, since it was due by then: only its claim lies ahead."""
    (job_id,) = submit(engine, new_job(delay_s=HOUR_S / 2))
    clock.advance(HOUR_S)
    assert claim(engine, holder := register(engine))
    assert engine.run(store.requeue([Requeue(id=job_id, attempt=1, kind="released")], holder=holder))
    clock.advance(-HOUR_S)

    assert moved(engine) == [job_id]
    assert due_in_s(engine, job_id) <= 0


def test_a_change_that_leaves_the_time_alone_says_nothing_of_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (job_id,) = submit(engine, new_job(delay_s=2 * HOUR_S))
    clock.advance(HOUR_S)
    engine.run(changes.change(job_id, JobChange(priority=3), actor="ada"))
    clock.advance(-HOUR_S)

    assert moved(engine, look=False) == []


def test_what_somebody_has_seen_is_left_to_those_who_carry_it_on(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    clock.advance(HOUR_S)
    (job_id,) = submit(engine, new_job(delay_s=DELAY_S))
    reached_us = now_us(engine)
    clock.advance(HOUR_S)
    (later,) = submit(engine, new_job(delay_s=DELAY_S))
    clock.advance(-2 * HOUR_S)

    assert moved(engine, reached_us, look=False) == [later]

    assert HOUR_S + DELAY_S - SOON_S < due_in_s(engine, job_id) <= HOUR_S + DELAY_S
    assert HOUR_S + DELAY_S - SOON_S < due_in_s(engine, later) <= HOUR_S + DELAY_S + 1.0
    assert read(engine, later).submitted_at_us <= reached_us


def test_more_than_a_day_is_not_believed(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(25 * HOUR_S)
    submit(engine)
    clock.advance(-25 * HOUR_S)

    assert moved(engine, look=False) == []


def test_what_is_due_keeps_its_place(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(HOUR_S)
    submit(engine, new_job(run_at_us=now_us(engine) - round(2 * HOUR_S * 1e6)))
    clock.advance(-HOUR_S)

    assert moved(engine, look=False) == []


def test_what_two_readings_differ_by_is_no_jump(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine, new_job(delay_s=DELAY_S))
    clock.advance(-0.9)

    assert moved(engine, look=False) == []


def test_who_runs_is_left_alone(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(HOUR_S)
    was = read(engine, running(engine).id)
    clock.advance(-HOUR_S)

    assert moved(engine, look=False) == []
    assert read(engine, was.id) == was


def test_a_job_at_its_gate_is_moved_and_gets_its_turn(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(HOUR_S)
    (job_id,) = submit(engine, new_job(exclusive="k"))
    clock.advance(-HOUR_S)
    assert engine.run(handing.hand_over()).queued == []

    assert moved(engine) == [job_id]

    assert [job.id for job in engine.run(handing.hand_over()).queued] == [job_id]


def test_a_strict_job_keeps_the_turn_that_it_has_started(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Its turn and its claim lie ahead in the order in which they were, and so they do afterwards."""
    clock.advance(HOUR_S)
    (job_id,) = submit(engine, new_job(exclusive="k", strict=True))
    engine.run(handing.hand_over())
    (job,) = claim(engine, holder := register(engine))
    again = Requeue(id=job_id, attempt=job.attempt, kind="retried", delay_s=DELAY_S)
    engine.run(store.requeue([again], holder=holder))
    clock.advance(-HOUR_S)

    assert moved(engine) == [job_id]

    (found,) = rows(engine, "SELECT turned_at <= claimed_at AS started, claimed_at FROM {jobs}")
    assert found["started"]
    submit(engine, new_job(exclusive="k", queue="else"))
    engine.run(pause_queue("mail", actor="ada"))
    assert engine.run(handing.take_turns_back(["key:k"], unclaimed_s=None)) == []


# --- how far others have seen it ---------------------------------------------------------------------


def test_a_living_worker_has_seen_the_clock_at_its_renewal(engine: AnyEngine, clock: DatabaseClock) -> None:
    assert engine.run(clock_reached()) == 0
    clock.advance(HOUR_S)
    holder = register(engine, lease_s=30.0)
    reached_us = now_us(engine)
    clock.advance(-HOUR_S)

    assert abs(engine.run(clock_reached()) - reached_us) < SOON_S * 1e6
    clock.advance(2 * HOUR_S)
    assert holder in bury(engine)
    assert engine.run(clock_reached()) > reached_us, "of the one that buried it"


def test_of_the_dead_nobody_carries_anything_on(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(HOUR_S)
    holder = register(engine)
    clock.advance(-HOUR_S)
    assert engine.run(store.retire(holder=holder))

    assert engine.run(clock_reached()) == 0


def test_a_living_worker_says_how_far_it_carries_the_time_on(engine: AnyEngine) -> None:
    holder = register(engine)
    stated = msgspec.json.encode(Stated(version=0, slot_groups=(), clock_behind_s=HOUR_S)).decode()
    assert engine.run(store.renew(holder=holder, stated=stated))

    assert abs(engine.run(clock_reached()) - now_us(engine) - HOUR_S * 1e6) < SOON_S * 1e6


# --- in workers --------------------------------------------------------------------------------------


def looks_of(engine: AnyEngine, told: list[Queued], carried: CarriedClock) -> ahead.Ahead:
    def announce(queued: Sequence[Queued]) -> None:
        """Keeps how often claims are told of jobs."""
        told.extend(queued)

    return ahead.Ahead(
        site_of(
            engine,
            config=Config(sweep_s=7.0),
            due=carried.due,
            announce=announce,
            now_us=carried.now_us,
        )
    )


async def test_it_goes_through_all_jobs_in_parts(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "PART_ROWS", 2)
    early = [new_job(delay_s=2 * HOUR_S) for _ in range(4)]
    await engine.arun(store.submit(early))
    clock.advance(HOUR_S)
    late = [new_job() for _ in range(3)]
    await engine.arun(store.submit(late))
    clock.advance(-HOUR_S)
    told: list[Queued] = []
    carried = CarriedClock()
    looks = looks_of(engine, told, carried)

    assert await looks.tick() == 7.0, "it has not read the clock"
    assert not told
    carried.read(steady(), await engine.arun(store.clock()))
    pauses = [await looks.tick() for _ in range(4)]

    assert {each.queue for each in told} == {each.template.queue for each in late}, "claims begin there"
    assert all(due_in_s(engine, each.id) <= 0 for each in late)
    assert pauses == [7.0, 7.0, 0.0, 7.0], "it hurries only where the clock did stand ahead"
    assert [await looks.tick() for _ in range(4)] == [7.0] * 4


async def test_what_another_worker_carries_on_it_leaves(engine: AnyEngine, clock: DatabaseClock) -> None:
    """A clock that is set back for a moment would else bring forward what is to come later."""
    await engine.arun(store.submit([new_job(delay_s=2 * HOUR_S)]))
    await engine.arun(
        store.register(holder=new_job().id, name="other", host="h", pid=1, info="{}", lease_s=30.0)
    )
    clock.advance(-HOUR_S)
    told: list[Queued] = []
    carried = CarriedClock()
    carried.read(steady(), await engine.arun(store.clock()))

    await looks_of(engine, told, carried).tick()

    assert not told


async def test_what_itself_has_read_it_leaves(engine: AnyEngine, clock: DatabaseClock) -> None:
    """It has not seen yet that the clock went back."""
    carried = CarriedClock()
    carried.read(steady(), await engine.arun(store.clock()) + 10_000_000)
    await engine.arun(store.submit([new_job(delay_s=2 * HOUR_S)]))
    clock.advance(-HOUR_S)
    told: list[Queued] = []

    await looks_of(engine, told, carried).tick()

    assert not told


async def test_a_worker_runs_what_was_submitted_while_the_clock_stood_ahead(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    async def works(n: int) -> int:
        return n

    kinds: list[dict[str, Any]] = [
        {},
        {"exclusive": "k"},
        {"share": "ada"},
        {"affinity": "nobody's", "affinity_wait_s": 0.3},
        {"exclusive": "k", "affinity": "nobody's", "affinity_wait_s": 0.3},
    ]
    jobs = [job_of("works", {"n": n}, **kind) for kind in kinds for n in range(2)]
    clock.advance(HOUR_S)
    await engine.arun(store.submit_gated(jobs))
    clock.advance(-HOUR_S)

    async with working(engine, works, config=quick()) as stage:
        found = [await stage.ended(job.id) for job in jobs]

    assert {(job.state, job.attempt) for job in found} == {("succeeded", 1)}
