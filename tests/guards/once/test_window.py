"""The first of equal things within a window is new; the others get what it came to."""

from __future__ import annotations

import pytest

from fencerow.errors import InvalidInput
from fencerow.guards.once import DedupeWindow
from fencerow.guards.once.window import purge_windows
from fencerow.testing.clock import DatabaseClock
from tests.guards.places import At
from tests.kit.jobs import AnyEngine


@pytest.fixture
def window(engine: AnyEngine) -> DedupeWindow:
    return DedupeWindow(At(engine), "posts", 5.0)


def test_later_ones_get_the_first_ones_value_until_the_window_is_over(
    window: DedupeWindow, clock: DatabaseClock
) -> None:
    first = window.admit("lilith:channel-1", "job-1")
    again = window.admit("lilith:channel-1", "job-2")
    elsewhere = window.admit("lilith:channel-2", "job-3")
    clock.advance(5.1)
    later = window.admit("lilith:channel-1", "job-4")

    assert [(each.is_new, each.value) for each in (first, again, elsewhere, later)] == [
        (True, "job-1"),
        (False, "job-1"),
        (True, "job-3"),
        (True, "job-4"),
    ]


async def test_content_counts_as_part_of_the_key(window: DedupeWindow) -> None:
    first = await window.aadmit("lilith", "job-1", content={"text": "hello " * 1000})
    same = await window.aadmit("lilith", "job-2", content={"text": "hello " * 1000})
    other = await window.aadmit("lilith", "job-3", content={"text": "good night"})
    long_key = await window.aadmit("x" * 256, "job-4", content="hello")

    assert (first.is_new, same.is_new, same.value, other.is_new) == (True, False, "job-1", True)
    assert long_key.is_new


def test_what_failed_is_withdrawn_and_the_next_one_is_new(window: DedupeWindow) -> None:
    with pytest.raises(RuntimeError), window.admitting("k", "job-1"):
        raise RuntimeError("not enqueued")
    with window.admitting("k", "job-2") as second:
        assert second.is_new
    with pytest.raises(RuntimeError), window.admitting("k", "job-3"):
        raise RuntimeError("a duplicate takes nothing back")

    assert window.admit("k", "job-4").value == "job-2"


async def test_async_blocks_do_the_same(window: DedupeWindow) -> None:
    with pytest.raises(RuntimeError):
        async with window.aadmitting("k", "job-1"):
            raise RuntimeError("not enqueued")
    async with window.aadmitting("k", "job-2") as second:
        assert second.is_new


def test_a_late_withdrawal_leaves_the_next_one_alone(window: DedupeWindow, clock: DatabaseClock) -> None:
    """Both have the same value, as ids that are derived from the message do."""
    slow = window.admit("k", "derived")
    clock.advance(6)
    assert window.admit("k", "derived").is_new

    assert window.withdraw(slow) is False
    assert not window.admit("k", "derived").is_new


def test_what_is_over_is_forgotten_in_batches(
    window: DedupeWindow, clock: DatabaseClock, engine: AnyEngine
) -> None:
    for number in range(5):
        window.admit(f"k{number}", "v")
    clock.advance(3)
    window.admit("young", "v")
    clock.advance(3)

    assert [engine.run(purge_windows(limit=3)) for _ in range(3)] == [3, 2, 0]
    assert not window.admit("young", "w").is_new


def test_a_value_that_cannot_be_kept_is_refused(window: DedupeWindow) -> None:
    for value in ("", "x" * 1025, "a\0b"):
        with pytest.raises(InvalidInput):
            window.admit("k", value)
    with pytest.raises(InvalidInput):
        DedupeWindow(At(window._place.engine), "posts", 0.0)
