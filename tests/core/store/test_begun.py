"""Of what a dead worker held, only what may have begun is suspect."""

from __future__ import annotations

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.operators import looking
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine, bury, claim, new_job, read, submit


def worker(engine: AnyEngine, begun_max: int | None) -> str:
    """A worker whose row says that so many of its jobs may have begun."""
    holder = new_id()
    stated = None if begun_max is None else f'{{"version":0,"shares":[],"begun_max":{begun_max}}}'
    register = store.register(holder=holder, name="w", host="h", pid=1, info="{}", lease_s=30, stated=stated)
    assert engine.run(register)
    return holder


def dies(engine: AnyEngine, clock: DatabaseClock, holder: str, batch: int = 100) -> None:
    clock.advance(31)
    bury(engine)
    while engine.run(store.reclaim([holder], limit=batch, actor="reaper"))[0]:
        pass


def suspects(engine: AnyEngine, *jobs: str) -> list[bool]:
    return [read(engine, each).suspect for each in jobs]


@pytest.mark.parametrize("batch", [100, 2])
def test_what_stood_further_back_in_its_lane_is_no_suspect(
    engine: AnyEngine, clock: DatabaseClock, batch: int
) -> None:
    """In batches, too: the places of the first are the same when the last have been taken."""
    holder = worker(engine, 2)
    now = engine.run(store.clock())
    late, soon = new_job(run_at_us=now - 1), new_job(run_at_us=now - 2)  # claimed in the order of their lane
    first = submit(engine, late, soon, new_job(run_at_us=now - 3))
    assert len(claim(engine, holder, limit=10)) == 3
    clock.advance(1)
    (after,) = submit(engine, new_job(run_at_us=now - 9))
    assert len(claim(engine, holder, limit=10)) == 1
    dies(engine, clock, holder, batch)

    assert suspects(engine, *first) == [False, True, True]
    assert suspects(engine, after) == [False]
    assert len(claim(engine, worker(engine, 2), limit=10)) == 2


def test_each_lane_name_and_time_limit_has_places_of_its_own(engine: AnyEngine, clock: DatabaseClock) -> None:
    """A more urgent job may overtake, and a call of a batch handler takes what is of its name and time limit."""
    holder = worker(engine, 1)
    jobs = [
        *(new_job() for _ in range(2)),
        *(new_job(priority=5) for _ in range(2)),
        *(new_job(name="other") for _ in range(2)),
        *(new_job(timeout_s=7.0) for _ in range(2)),
    ]
    ids = submit(engine, *jobs)
    marks = [store.Mark(5), store.Mark(0)]
    lanes = store.claim("mail", marks, holder=holder, names=["send", "other"], limit=10, margin_s=60)
    assert len(engine.run(lanes)) == 8
    dies(engine, clock, holder)

    assert suspects(engine, *ids) == [True, False] * 4


def test_all_are_suspect_where_the_worker_did_not_say(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder = worker(engine, None)
    ids = submit(engine, *(new_job() for _ in range(3)))
    claim(engine, holder, limit=10)
    dies(engine, clock, holder)

    assert suspects(engine, *ids) == [True] * 3


def test_a_suspect_stays_one_however_far_back_it_stood(engine: AnyEngine, clock: DatabaseClock) -> None:
    ids = submit(engine, new_job(), new_job())
    first, second = worker(engine, None), worker(engine, 1)
    claim(engine, first, limit=10)
    engine.run(store.retire(holder=first))
    engine.run(store.reclaim([first], limit=10, actor=None))
    taken = store.claim_suspect("mail", holder=second, names=["send"], margin_s=60, at_most=2)
    assert len(engine.run(taken)) == 2
    dies(engine, clock, second)

    assert suspects(engine, *ids) == [True, True]


def test_a_death_before_it_began_is_not_held_against_a_job(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Only of those in which it may have run are there too many in the end."""
    first, last = submit(engine, new_job(crashes_max=1), new_job(crashes_max=1))
    for _ in range(5):
        holder = worker(engine, 1)
        claim(engine, holder, limit=10)
        engine.run(store.claim_suspect("mail", holder=holder, names=["send"], margin_s=60))
        engine.run(store.retire(holder=holder))
        engine.run(store.reclaim([holder], limit=10, actor=None))

    assert (read(engine, first).state, read(engine, first).suspect) == ("failed", True)
    assert (read(engine, last).state, read(engine, last).suspect) == ("queued", True)
    assert engine.run(looking.events(last))[-1].detail["deaths"] < 5
