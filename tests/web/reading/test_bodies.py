"""All bodies together: bounded, small ones free, and the one that has been coming for longest goes first."""

from __future__ import annotations

import asyncio

import pytest

from fencerow.core.errors import FencerowError
from fencerow.web.errors import RequestTooSlow, TooManyRequests
from fencerow.web.reading.bodies import FREE_BYTES, Bodies
from fencerow.web.reading.body import body_of
from tests.web.reading.senders import JSON, Sender, headers, played

MAX = 100_000


async def sent(bodies: Bodies, *parts: bytes | float, after_s: float = 0.0) -> bytes | FencerowError:
    """What comes of a body that is sent like this while nobody but the others needs room."""
    await asyncio.sleep(after_s)
    with bodies.body() as room:
        try:
            return await body_of(Sender(parts), headers(JSON), bytes_max=MAX, timeout_s=60.0, room=room)
        except FencerowError as error:
            return error


def of(*bodies: tuple[float, tuple[bytes | float, ...]]) -> list[bytes | FencerowError]:
    """What comes of these, which begin after so many seconds."""
    all_of_them = Bodies(MAX)

    async def act() -> list[bytes | FencerowError]:
        found = await asyncio.gather(*(sent(all_of_them, *parts, after_s=at) for at, parts in bodies))
        assert all_of_them.held == 0
        return found

    return played(act)


def test_the_one_that_has_been_coming_for_longest_is_given_up_and_no_other() -> None:
    most = b"a" * (MAX // 2)

    slow, less_slow, fast = of((0, (most, 20.0, b"b")), (5, (most, 20.0, b"b")), (10, (most,)))

    assert isinstance(slow, RequestTooSlow) and "needed its room" in slow.what
    assert (less_slow, fast) == (most + b"b", most)


def test_one_that_began_just_now_keeps_its_room_and_the_next_is_told_to_wait() -> None:
    most = b"a" * (MAX - FREE_BYTES)

    first, second = of((0, (most, 0.5, b"b")), (0.4, (most, b"b" * FREE_BYTES)))

    assert first == most + b"b"
    assert isinstance(second, TooManyRequests) and (second.status, second.closes) == (503, True)


def test_small_bodies_are_free_and_what_is_served_is_not_given_up() -> None:
    all_of_them = Bodies(MAX)

    async def act() -> None:
        with all_of_them.body() as held:
            await body_of(
                Sender([b"a" * MAX]), headers(JSON), bytes_max=MAX, timeout_s=60.0, room=held
            )  # whole, and served
            await asyncio.sleep(5)
            assert await sent(all_of_them, b"a" * FREE_BYTES) == b"a" * FREE_BYTES
            assert isinstance(await sent(all_of_them, b"a" * 2 * FREE_BYTES, 1.0, b"b" * MAX), FencerowError)
            assert not held.is_given_up

    played(act)


@pytest.mark.parametrize("often", [1, 2])
def test_leaving_twice_gives_back_once(often: int) -> None:
    bodies = Bodies(MAX)
    body = bodies.body()
    body.has(FREE_BYTES + 10)

    for _ in range(often):
        body.leave()

    assert bodies.held == 0
