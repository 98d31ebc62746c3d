"""How fast each caller may send, and how many requests are served at once."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencerow.web.errors import TooManyRequests
from fencerow.web.reading.rates import SHARED, Rates
from fencerow.web.reading.room import Room
from fencerow.web.settings import WebSettings


def taken(rates: Rates, who: str, now: float, tries: int = 1000) -> int:
    """How many of so many requests at one moment are let through."""
    return sum(rates.take(who, now) is None for _ in range(tries))


def test_a_burst_passes_and_then_the_rate() -> None:
    rates = Rates(per_s=10, burst=5, callers_max=100)

    assert [taken(rates, "a", now) for now in (0.0, 0.05, 0.1, 0.35, 100.0)] == [5, 0, 1, 2, 5]


def test_the_wait_that_is_told_is_just_enough() -> None:
    rates = Rates(per_s=10, burst=5, callers_max=100)
    taken(rates, "a", 7.0)

    with pytest.raises(TooManyRequests) as refused:
        rates.check("a", 7.02)
    wait_s = refused.value.retry_after_s

    assert wait_s == pytest.approx(0.08) and refused.value.status == 429
    assert rates.take("a", 7.02 + wait_s * 0.99) is not None
    assert rates.take("a", 7.02 + wait_s) is None


def test_a_caller_does_not_pay_for_another() -> None:
    rates = Rates(per_s=10, burst=5, callers_max=100)
    taken(rates, "a", 0.0)

    assert taken(rates, "b", 0.0) == 5


def test_without_a_rate_all_pass() -> None:
    rates = Rates.of(WebSettings(web_rate_per_second=0.0))

    assert taken(rates, "a", 0.0) == 1000


def test_who_floods_the_table_neither_grows_it_nor_gets_a_new_bucket() -> None:
    rates = Rates(per_s=1, burst=5, callers_max=100)
    taken(rates, "a", 0.0)

    let_through = sum(rates.take(f"stranger {at}", 0.0) is None for at in range(10_000))

    assert rates.take("a", 0.0) is not None  # its empty bucket is kept
    assert len(rates) == 100
    assert let_through <= 99 + SHARED * 5


def test_full_buckets_make_place_for_newcomers() -> None:
    rates = Rates(per_s=1, burst=5, callers_max=100)
    for at in range(200):
        rates.take(f"old {at}", 0.0)

    newcomers = [taken(rates, f"new {at}", 10.0) for at in range(90)]

    assert newcomers == [5] * 90
    assert len(rates) <= 100


def test_those_who_never_rest_keep_no_newcomers_out() -> None:
    rates, busy = Rates(per_s=1, burst=5, callers_max=100), ["busy", "busier"]
    for who in busy:
        taken(rates, who, 0.0)
    for at in range(98):
        rates.take(f"old {at}", 0.0)

    for now in range(1, 60):
        for who in busy:
            rates.take(who, now)

    assert len(rates) == len(busy)


@settings(max_examples=60)
@example([("b", 0.0), ("c", 0.0), ("a", 0.25), ("a", 0.25)], 1)  # from a shared bucket to one of its own
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 2)), max_size=60), st.integers(1, 5))
def test_no_order_of_requests_passes_more_than_rate_and_burst(
    asked: list[tuple[str, float]], burst: int
) -> None:
    rates, now = Rates(per_s=2, burst=burst, callers_max=2), 0.0
    passed: dict[str, list[float]] = {}
    for who, pause in asked:
        now += pause
        if rates.take(who, now) is None:
            passed.setdefault(who, []).append(now)
    for times in passed.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                assert last - first + 1 <= burst + (times[last] - times[first]) * 2 + 1e-6


def test_seats_are_counted_in_all_and_for_each_caller() -> None:
    room = Room.of(WebSettings(web_requests_max=3, web_requests_caller_max=2))
    seats = [room.seat("a"), room.seat("a"), room.seat("b")]

    with pytest.raises(TooManyRequests) as of_one:
        room.seat("a")
    with pytest.raises(TooManyRequests) as of_all:
        room.seat("c")

    assert (of_one.value.status, of_all.value.status) == (429, 503)
    assert of_one.value.retry_after_s > 0 and of_one.value.repeat == "yes"
    seats[0].leave()
    seats[0].leave()
    assert room.taken == 2
    room.seat("c")


def test_those_who_wait_have_a_room_of_their_own() -> None:
    limits = WebSettings(web_requests_max=1, web_waiting_max=1, web_waiting_caller_max=1)

    room, waiting = Room.of(limits), Room.waiting(limits)
    waiting.seat("a")

    room.seat("a")
    with pytest.raises(TooManyRequests):
        waiting.seat("a")


def test_each_way_out_gives_the_seat_back() -> None:
    room = Room(10, 10)

    async def served(error: BaseException | None, begun: asyncio.Event) -> None:
        with room.seat("a"):
            begun.set()
            if error is None:
                await asyncio.Event().wait()
            else:
                raise error

    async def all_ways() -> None:
        begun = [asyncio.Event() for _ in range(3)]
        ways = [None, ValueError("no"), asyncio.CancelledError()]
        tasks = [asyncio.create_task(served(*each)) for each in zip(ways, begun, strict=True)]
        for each in begun:
            await each.wait()
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(all_ways())

    assert room.taken == 0 and len(room) == 0
