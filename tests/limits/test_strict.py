"""A strict rate: two starts are never closer than its interval, however late a turn is used."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fencerow.core.store import store
from fencerow.db.due import Due
from fencerow.limits import Limit, Rate
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing, looks
from tests.kit.jobs import AnyEngine, claim, read, register
from tests.limits.test_named import define, end, hand_over, limited
from tests.limits.test_queues import bounded, many

MINUTE_S = 60.0  # time goes on while a statement runs: on a busy machine by a second, but not by a minute
STRICT = Rate(1, per_s=10 * MINUTE_S, strict=True)


def due_minutes(engine: AnyEngine) -> float:
    """In how many minutes a gate is to be looked at."""
    arrived, due_us = engine.run(looks.turns_wanted())
    assert not arrived and due_us is not None
    return due_us / 1e6 / MINUTE_S


def hand_over_due(engine: AnyEngine) -> list[str]:
    return [job.id for job in engine.run(handing.hand_over()).queued]


def test_a_turn_that_is_used_late_keeps_the_next_one_as_far_away(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    define(engine, Limit("a", rate=STRICT), Limit("b", rate=Rate(1, per_s=10 * MINUTE_S)))
    ids, loose = limited(engine, "a", count=3), limited(engine, "b", count=2)
    assert hand_over(engine) == [ids[0], loose[0]]
    clock.advance(9 * MINUTE_S)
    claim(engine, register(engine), limit=2)
    clock.advance(2 * MINUTE_S)
    assert hand_over_due(engine) == [loose[1]], "a rate that is not strict lets one start two minutes later"
    assert 7 < due_minutes(engine) <= 8
    clock.advance(8 * MINUTE_S)
    assert hand_over_due(engine) == [ids[1]]
    clock.advance(60 * MINUTE_S)
    assert hand_over_due(engine) == [], "nobody has claimed it, so nobody knows when it will start"
    assert 9 < due_minutes(engine) <= 10
    engine.run(store.cancel(ids[1], actor="ada"))
    assert hand_over(engine) == [ids[2]], "it will never start"


def test_what_is_known_of_the_last_start_outlives_its_job(engine: AnyEngine, clock: DatabaseClock) -> None:
    define(engine, Limit("a", rate=STRICT))
    (first,), holder = limited(engine, "a", ephemeral=True), register(engine)
    assert hand_over(engine) == [first]
    clock.advance(30 * MINUTE_S)
    claim(engine, holder)
    end(engine, holder, first)
    (second,) = limited(engine, "a")
    assert hand_over(engine) == []
    assert 9 < due_minutes(engine) <= 10
    clock.advance(10 * MINUTE_S)
    assert hand_over_due(engine) == [second]


@pytest.mark.parametrize("name", ["queue:mail", "fleet"])
def test_a_queue_starts_them_one_by_one(engine: AnyEngine, clock: DatabaseClock, name: str) -> None:
    define(engine, Limit(name, rate=Rate(3, per_s=30 * MINUTE_S, strict=True)))
    holder = register(engine)
    many(engine, 3)
    starts = []
    for _ in range(3):
        (job,) = bounded(engine, holder).jobs
        starts.append(read(engine, job.id).claimed_at_us or 0)
        wait_s = bounded(engine, holder).again_s
        assert wait_s is not None and 9 < wait_s / MINUTE_S <= 10
        clock.advance(wait_s)
    assert all(10 <= (later - earlier) / 1e6 / MINUTE_S < 11 for earlier, later in pairwise(starts))


def test_each_key_is_spaced_for_itself(engine: AnyEngine) -> None:
    define(engine, Limit("t", rate=STRICT, per_key=True))
    ids = [each for key in ("x", "y") for each in limited(engine, f"t/{key}", count=2)]
    assert hand_over(engine) == ids[::2]


@pytest.mark.parametrize(
    "rate", [STRICT, Rate(1, per_s=10 * MINUTE_S), Rate(1, per_s=10 * MINUTE_S, burst=3)]
)
def test_a_clock_that_goes_back_stops_it_for_one_interval(
    engine: AnyEngine, clock: DatabaseClock, rate: Rate
) -> None:
    define(engine, Limit("a", rate=rate))
    ids = limited(engine, "a", count=rate.burst + 1)
    assert hand_over(engine) == ids[:-1]
    claim(engine, register(engine), limit=9)
    clock.advance(-3_600)
    assert engine.run(handing.hand_over(["limit:a"])).queued == []
    assert due_minutes(engine) <= 10
    clock.advance(10 * MINUTE_S)
    due = Due(until_us=read(engine, ids[-1]).run_at_us, since_us=1)  # it was, before the clock went back
    assert [job.id for job in engine.run(handing.hand_over(["limit:a"], due=due)).queued] == ids[-1:]
