"""A look that comes late makes up for it while jobs wait: a rate lets through what it says, and no more when idle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencerow.limits import Limit, Rate, pacing
from fencerow.limits.definition import Limit as Definition
from fencerow.limits.pacing import CATCH_UP_US, Pace
from fencerow.limits.room import LimitState, after_starts
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing
from tests.kit.jobs import AnyEngine, claim, register
from tests.limits.test_named import define, hand_over, limited
from tests.limits.test_queues import bounded, many

T0 = 1_800_000_000_000_000
SLOW = Rate(1, per_s=10)
paces = st.builds(Pace, interval_us=st.integers(100, 5_000_000), burst=st.integers(1, 20))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour is made up for, so that no pause of the machine matters."""
    monkeypatch.setattr(pacing, "CATCH_UP_US", 3_600_000_000)


@given(paces, st.lists(st.integers(0, CATCH_UP_US), min_size=1, max_size=40))
def test_with_jobs_that_wait_late_looks_let_through_what_punctual_ones_would(
    pace: Pace, late: list[int]
) -> None:
    tat, now, count, owed = 0, T0, 0, False
    for each in late:
        found = pace.room(tat, now, at_most=10**9, owed=owed)
        tat = pace.taken(tat, now, found, owed=owed)
        count, owed = count + found, True
        assert count == pace.burst + (now - T0) // pace.interval_us
        now = pace.start_us(tat, now, owed=True) + each


@given(paces, st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(0, 30), st.booleans()), max_size=30))
def test_no_stretch_of_time_holds_more_than_the_rate_of_a_second_beyond(
    pace: Pace, asked: list[tuple[int, int, bool]]
) -> None:
    tat, now, owed = 0, T0, False
    starts: list[int] = []
    for later, wanted, waits in asked:
        now += later
        found = pace.room(tat, now, at_most=wanted, owed=owed)
        tat = pace.taken(tat, now, found, owed=owed) if found else tat
        starts += [now] * found
        owed = waits

    beyond = CATCH_UP_US // pace.interval_us + 1
    for first in range(len(starts)):
        for last in range(first + 1, len(starts)):
            within = pace.burst + (starts[last] - starts[first]) // pace.interval_us + beyond
            assert last - first + 1 <= within


def test_a_bucket_that_was_full_for_longer_owes_nothing() -> None:
    pace = Pace(100_000)

    assert pace.room(T0, T0 + CATCH_UP_US, at_most=99, owed=True) == 11
    assert pace.room(T0, T0 + CATCH_UP_US + 1, at_most=99, owed=True) == 1
    assert pace.room(T0, T0 + CATCH_UP_US, at_most=99) == 1


def test_what_is_owed_is_not_forgotten_while_it_matters() -> None:
    owing = LimitState(T0, owed=True)

    assert not owing.is_as_new(T0 + CATCH_UP_US - 1)
    assert owing.is_as_new(T0 + CATCH_UP_US)


@pytest.mark.parametrize(("waits", "owed"), [(True, True), (False, False), (None, True)])
def test_a_strict_rate_owes_nothing_and_another_what_somebody_waited_for(
    waits: bool | None, owed: bool
) -> None:
    before = LimitState(T0 - 1, owed=True)

    assert after_starts(Definition("a", rate=SLOW), before, T0, ["j"], waits).owed is owed
    strict = after_starts(Definition("a", rate=Rate(1, per_s=10, strict=True)), LimitState(), T0, ["j"], True)
    assert not strict.owed


def test_quick_rates_are_looked_at_for_several_starts_at_once() -> None:
    assert Pace(1_000).look_us(T0 + 900, T0) == T0 + 20_000
    assert Pace(50_000).look_us(T0 + 900, T0) == T0 + 900


@pytest.mark.usefixtures("patient")
def test_a_queue_whose_jobs_wait_gets_the_starts_that_a_late_claim_missed(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    holder = register(engine)
    define(engine, Limit("queue:mail", rate=SLOW))
    many(engine, 20)
    assert len(bounded(engine, holder, 20).jobs) == 1
    assert bounded(engine, holder, 20).jobs == []

    clock.advance(105)
    assert len(bounded(engine, holder, 20).jobs) == 10


@pytest.mark.usefixtures("patient")
def test_a_queue_in_which_nobody_waited_gets_no_more_than_its_burst(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    holder = register(engine)
    define(engine, Limit("queue:mail", rate=SLOW))
    many(engine, 1)
    assert len(bounded(engine, holder, 20).jobs) == 1

    clock.advance(105)
    many(engine, 20)
    assert len(bounded(engine, holder, 20).jobs) == 1


@pytest.mark.usefixtures("patient")
def test_jobs_that_wait_at_a_limit_get_the_turns_that_a_late_look_missed(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    define(engine, Limit("a", rate=SLOW), Limit("b", rate=SLOW))
    ids, lone = limited(engine, "a", count=20), limited(engine, "b")
    assert looked(engine) == [ids[0], *lone]

    clock.advance(105)
    late = limited(engine, "b", count=5)
    assert looked(engine) == [ids[1], late[0]]
    assert [each for _ in range(12) for each in looked(engine)] == ids[2:11]


def looked(engine: AnyEngine) -> list[str]:
    """Who is given a turn by a look at both limits; they start at once."""
    given = [job.id for job in engine.run(handing.hand_over(["limit:a", "limit:b"])).queued]
    claim(engine, register(engine), limit=100)
    return given


def test_turns_that_nobody_starts_are_no_more_than_the_burst(engine: AnyEngine, clock: DatabaseClock) -> None:
    """They would all start at once when somebody comes, whatever the rate."""
    define(engine, Limit("a", rate=Rate(5, per_s=1, burst=2)))
    ids = limited(engine, "a", count=20)
    assert hand_over(engine) == ids[:2]
    clock.advance(8)
    assert engine.run(handing.hand_over()).queued == []

    claim(engine, register(engine), limit=100)
    clock.advance(1)
    given = [job.id for job in engine.run(handing.hand_over()).queued]
    assert given == ids[2:4], "no claim tells, so it is looked at again all the same"


@pytest.mark.usefixtures("patient")
def test_a_look_that_comes_too_early_forgets_nothing(engine: AnyEngine, clock: DatabaseClock) -> None:
    define(engine, Limit("a", rate=SLOW))
    ids = limited(engine, "a", count=20)
    assert hand_over(engine) == ids[:1]
    later = limited(engine, "a")
    assert hand_over(engine) == []

    claim(engine, register(engine))
    clock.advance(105)
    assert [each for _ in range(12) for each in looked(engine)] == ids[1:11]
    assert later
