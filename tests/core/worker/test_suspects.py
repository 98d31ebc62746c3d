"""How many suspects a worker runs at once."""

from __future__ import annotations

import time

import pytest
from msgspec import structs

from fencerow.core.model.handler import Handler
from fencerow.core.worker import roster as module
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.roster import Suspects
from tests.core.worker.stage import handler
from tests.core.worker.test_parts import claimed


async def apart() -> None: ...


async def alone() -> None: ...


APART, ALONE = handler(apart), handler(alone)


def suspects(at_most: int = 3) -> Suspects:
    return Suspects(at_most)


def stays_here(each: Handler) -> bool:
    return each is ALONE


def suspect(where: Suspects) -> Attempt:
    one = Attempt(structs.replace(claimed(suspect=True), name="apart"), "holder", APART)
    where.take(one)
    return one


def ended(where: Suspects, *, crashed: bool = False, why: Interrupt | None = None) -> int:
    """One more has ended; returns how many may run at once from then on."""
    one = suspect(where)
    one.started, one.crashed, one.interrupt = time.monotonic(), crashed, why
    assert where.over(one)
    return where.room()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROW_S", 0.0)


def test_one_at_a_time_and_one_more_for_each_that_ended_well(patient: None) -> None:
    mine = suspects(at_most=3)

    assert [mine.room(), *(ended(mine) for _ in range(4))] == [1, 2, 3, 3, 3]


def test_a_crash_makes_it_one_at_a_time_again(patient: None) -> None:
    mine = suspects()
    ended(mine)

    assert [ended(mine, crashed=True), ended(mine)] == [1, 2]


def test_what_was_ended_by_us_or_never_began_tells_nothing(patient: None) -> None:
    mine = suspects()
    never = suspect(mine)

    assert mine.over(never)
    assert ended(mine, why=Interrupt.TIMEOUT) == 1


def test_short_jobs_do_not_start_one_process_after_the_other() -> None:
    mine = suspects()

    assert [ended(mine) for _ in range(5)] == [2] * 5


def test_others_are_not_counted() -> None:
    mine = suspects()
    other = Attempt(claimed(), "holder", ALONE)

    assert (mine.held, mine.over(other), mine.room()) == (0, False, 1)


def test_of_those_that_no_child_finds_one_comes_at_a_time() -> None:
    mine = suspects()
    one = Attempt(claimed(suspect=True), "holder", ALONE)
    handlers = {"apart": APART, "alone": ALONE}

    assert mine.sorted_out(handlers, stays_here) == (["apart"], ["alone"])
    mine.take(one)
    assert mine.sorted_out(handlers, stays_here) == (["apart"], [])
    assert mine.over(one) and mine.sorted_out(handlers, stays_here) == (["apart"], ["alone"])


def test_one_that_takes_long_does_not_hold_back_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    mine = suspects(at_most=3)
    suspect(mine)
    rooms = []
    for _ in range(5):
        rooms.append(mine.room())
        now += module.PATIENCE_S
        rooms.append(mine.room())
        if rooms[-1]:
            suspect(mine)

    assert rooms == [0, 1, 0, 1, 0, 0, 0, 0, 0, 0], "one more each time, up to the limit"


def test_patience_counts_from_the_last_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    mine = suspects()
    mine.over(suspect(mine))
    now += module.PATIENCE_S - 1
    suspect(mine)
    now += 2

    assert mine.room() == 0
