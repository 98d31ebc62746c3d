"""Done once for a key: the second caller gets the first one's result, and only a failure makes it be done again."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from fencerow import InvalidInput
from fencerow.errors import (
    DeclarationError,
    InvalidPayload,
    OnceConflict,
    OnceLost,
    OnceMisuse,
    OnceRunning,
    PayloadTooLarge,
)
from fencerow.guards.once import DedupeWindow, once
from fencerow.guards.once.reserving import purge_once
from fencerow.guards.once.run import OnceRun
from fencerow.testing.clock import DatabaseClock
from tests.guards.places import At
from tests.kit.jobs import AnyEngine


@pytest.fixture
def at(engine: AnyEngine) -> At:
    return At(engine)


def keys(engine: AnyEngine) -> list[tuple[Any, ...]]:
    table = "fencerow.once_keys" if engine.dialect == "postgres" else "fencerow_once_keys"
    with engine.session() as session:
        return [
            tuple(row) for row in session.connection.execute(f"SELECT key, owner FROM {table}").fetchall()
        ]


def test_a_second_call_gets_the_first_ones_result(at: At) -> None:
    calls: list[int] = []

    def charge(amount: int) -> dict[str, int]:
        calls.append(amount)
        return {"paid": amount}

    answers = [once(at, "order-17", fingerprint={"amount": 5}).call(charge, 5) for _ in range(3)]

    assert answers == [{"paid": 5}] * 3 and calls == [5]


async def test_async_code_does_the_same(at: At) -> None:
    calls: list[int] = []

    async def charge(amount: int) -> list[int]:
        calls.append(amount)
        return [amount]

    answers = [await once(at, "order-17").acall(charge, 5) for _ in range(2)]

    assert answers == [[5], [5]] and calls == [5]


@dataclass
class Receipt:
    number: int
    of: UUID


def test_a_decorated_function_returns_its_own_type_each_time(at: At) -> None:
    calls: list[int] = []

    @once(at, lambda number: f"order-{number}", fingerprint=lambda number: number)
    def charge(number: int) -> Receipt:
        calls.append(number)
        return Receipt(number, UUID(int=7))

    assert charge(1) == charge(1) == Receipt(1, UUID(int=7))
    assert charge(2) == Receipt(2, UUID(int=7))
    assert calls == [1, 2]


async def test_an_async_decorated_function_too(at: At) -> None:
    calls: list[int] = []

    @once(at, lambda number: f"order-{number}")
    async def charge(number: int) -> Receipt:
        calls.append(number)
        return Receipt(number, UUID(int=7))

    assert await charge(1) == await charge(1) == Receipt(1, UUID(int=7))
    assert calls == [1]


def test_in_a_block_the_caller_says_what_came_of_it(at: At) -> None:
    with once(at, "k") as first:
        assert first.needed
        with pytest.raises(OnceMisuse, match="no result yet"):
            _ = first.result
        first.done("paid")
    with once(at, "k") as second:
        assert not second.needed
        assert second.result == "paid"
        with pytest.raises(OnceMisuse, match="does not belong to this caller"):
            second.done("again")


async def test_a_block_that_ends_well_is_done_even_if_nobody_says_so(at: At) -> None:
    async with once(at, "k") as first:
        assert first.needed
    async with once(at, "k") as second:
        assert (second.needed, second.result) == (False, None)


def test_a_failure_gives_the_key_back_at_once(at: At, engine: AnyEngine) -> None:
    with pytest.raises(RuntimeError), once(at, "k"):
        raise RuntimeError("the gateway is away")

    assert keys(engine) == []
    assert once(at, "k").call(lambda: "paid") == "paid"


async def test_a_cancelled_call_gives_the_key_back(at: At, engine: AnyEngine) -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(once(at, "k").acall(hang))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert keys(engine) == []


def test_another_payload_under_the_same_key_is_refused(at: At) -> None:
    once(at, "k", fingerprint={"a": 1, "b": [2]}, owner="web").call(lambda: 1)

    assert once(at, "k", fingerprint={"b": [2], "a": 1}).call(lambda: 2) == 1, (
        "the same data in another order"
    )
    with pytest.raises(OnceConflict, match="another payload") as caught:
        once(at, "k", fingerprint={"a": 1, "b": [3]}).call(lambda: 2)
    assert caught.value.owner == "web"
    assert once(at, "k", scope="another", fingerprint={"a": 2}).call(lambda: 2) == 2


def test_while_one_does_it_another_is_told_so(at: At, clock: DatabaseClock) -> None:
    with once(at, "k", owner="first", stale_s=60) as first, once(at, "k", owner="second") as second:
        assert not second.needed and second.owner == "first"
        with pytest.raises(OnceRunning) as caught:
            _ = second.result
        assert (caught.value.owner, caught.value.repeat) == ("first", "yes")
        with pytest.raises(OnceRunning):
            once(at, "k").call(lambda: "twice")
        first.done(1)


def test_whoever_crashed_may_go_on_at_once_and_others_after_the_lease(at: At, clock: DatabaseClock) -> None:
    """A crash is a turn that was begun and never left: nobody says anything about it any more."""
    crashed = once(at, "k", owner="worker-1", attempt=1, stale_s=60).__enter__()

    with once(at, "k", owner="worker-2", stale_s=60) as other:
        assert not other.needed
    again = once(at, "k", owner="worker-1", attempt=2, stale_s=60)
    assert again.__enter__().needed, "it is no duplicate of itself"

    clock.advance(61)
    with once(at, "k", owner="worker-2", stale_s=60) as other:
        assert other.needed
        for zombie in (crashed, again._entered):
            assert isinstance(zombie, OnceRun)
            with pytest.raises(OnceLost):
                zombie.done("late")
            assert zombie.release() is False
            with pytest.raises(OnceLost):
                zombie.renew()
        other.done("in time")
    assert once(at, "k").call(lambda: "again") == "in time"


@pytest.mark.parametrize("attempts", [(1, 1), (2, 1), (None, None), (None, 1), (1, None)])
def test_what_may_be_at_work_still_is_not_taken_over(
    at: At, clock: DatabaseClock, attempts: tuple[int | None, int | None]
) -> None:
    """Only a later attempt of the owner knows that the earlier one is over."""
    mine, asking = attempts
    with once(at, "k", owner="nightly", attempt=mine, stale_s=60) as first:
        with once(at, "k", owner="nightly", attempt=asking, stale_s=60) as second:
            assert not second.needed
        first.done("in time")
    assert once(at, "k").call(lambda: "again") == "in time"


@pytest.mark.parametrize(
    "given", [{"attempt": 1}, {"owner": "a", "attempt": -1}, {"owner": "a", "attempt": True}]
)
def test_an_attempt_is_a_number_of_an_owners(at: At, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="attempt is"):
        once(at, "k", **given).call(lambda: 1)


def test_a_renewed_lease_is_not_taken_over(at: At, clock: DatabaseClock) -> None:
    with once(at, "k", stale_s=3600) as first:
        clock.advance(3000)
        first.renew()
        clock.advance(3000)
        with once(at, "k") as second:
            assert not second.needed


def test_the_lifetime_counts_from_the_end(at: At, clock: DatabaseClock, engine: AnyEngine) -> None:
    with once(at, "k", stale_s=7200, lifetime_s=3600) as first:
        clock.advance(6000)
        first.done(1)
    clock.advance(3000)
    assert engine.run(purge_once(limit=10)) == 0
    assert once(at, "k").call(lambda: 2) == 1
    clock.advance(1200)
    assert once(at, "k", fingerprint="new", lifetime_s=3600).call(lambda: 2) == 2

    clock.advance(3601)
    assert engine.run(purge_once(limit=10)) == 1
    assert keys(engine) == []


def test_an_effect_whose_mark_failed_is_not_tried_again(at: At) -> None:
    """It has happened: better a key that stays taken for a while than a second charge."""
    with pytest.raises(InvalidPayload):
        once(at, "k", owner="first").call(lambda: float("nan"))
    with pytest.raises(OnceRunning):
        once(at, "k", owner="second").call(lambda: 1)


@pytest.mark.parametrize("key", ["", "x" * 257, "a\0b", "a\nb", "\ud800"])
def test_a_key_that_cannot_be_kept_is_refused(at: At, key: str, engine: AnyEngine) -> None:
    with pytest.raises(InvalidInput):
        once(at, key)
    with pytest.raises(InvalidInput):
        DedupeWindow(at, "w", 5).admit(key, "v")
    assert keys(engine) == []


def test_what_has_no_fingerprint_is_refused(at: At) -> None:
    for payload in (object(), float("inf"), {"a": {1: object()}}, "a\0"):
        with pytest.raises(InvalidPayload):
            once(at, "k", fingerprint=payload).call(lambda: 1)


def test_a_result_that_is_too_large_is_refused(at: At) -> None:
    with pytest.raises(PayloadTooLarge):
        once(at, "k").call(lambda: "x" * 2_000_000)


@pytest.mark.parametrize(
    "times", [{"stale_s": 0}, {"lifetime_s": -1}, {"timeout_s": float("nan")}, {"wait_s": "x"}]
)
def test_times_that_make_no_sense_are_refused(at: At, times: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        once(at, "k", **times)


def test_functions_that_say_nothing_of_their_result_may_be_called(at: At) -> None:
    assert once(at, "k").call(max, 1, 2) == once(at, "k").call(max, 7, 9) == 2


def test_a_result_that_could_not_be_kept_is_refused_before_the_effect(at: At) -> None:
    done: list[int] = []

    def effect() -> threading.Lock:
        done.append(1)
        return threading.Lock()

    with pytest.raises(DeclarationError):
        once(at, "k").call(effect)
    assert done == []


def test_one_object_is_one_turn_at_a_time(at: At) -> None:
    guard = once(at, "k")
    with guard, pytest.raises(OnceMisuse):
        guard.__enter__()
