"""Several events at a time on their way to a broker: what a failure of one of them does to the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from redis.exceptions import ResponseError

from fencerow import App
from fencerow.events import NewEvent, apublish_many
from fencerow.events.consumers import Stored
from fencerow.events.event import Event
from fencerow.events.lag import lags
from fencerow.relay import RedisStream, relay_out
from fencerow.relay.broker import Outgoing
from fencerow.relay.errors import BrokerAway, BrokerRefused
from fencerow.relay.flights import Flights, Open
from fencerow.relay.redis_stream import RedisSender, each_told
from fencerow.relay.sending import outgoing
from tests.relay.stage import RedisServer, auntil, entries

Answer = Callable[[str], Exception | None]


class Taker:
    """A broker that answers each message as it is told, and keeps what came together."""

    def __init__(self, answer: Answer, *, as_a_whole: bool) -> None:
        self.takes_as_a_whole = as_a_whole
        self.flights: list[str] = []
        self._answer = answer

    async def send(self, messages: Sequence[Outgoing]) -> Sequence[Exception | None]:
        numbers = [each.headers["fencerow-position"] for each in messages]
        self.flights.append(" ".join(numbers))
        return [self._answer(each) for each in numbers]

    async def close(self) -> None: ...


def event(position: int, key: str | None) -> Event:
    nothing: Any = None
    stored = Stored(position, position, "t", key, "1", None, 0)
    return Event(stored, "relay.r", nothing, nothing, is_async=True, idle_s=1.0)


def takes(_number: str) -> None:
    return None


async def handed(sender: Taker, keys: str, *, in_one_order: bool = False) -> list[Exception | None]:
    """What becomes of events with these keys, one after the other, as a drainer hands them over."""
    events = [event(at, key.strip("-") or None) for at, key in enumerate(keys, 1)]
    flights, opened = Flights(events, outgoing, in_one_order=in_one_order), Open()
    return [await flights.result(each, opened, sender) for each in events]


@pytest.mark.parametrize(
    ("as_a_whole", "in_one_order", "flights"),
    [
        (True, False, ["1 2 3 4 5"]),
        (True, True, ["1 2 3 4 5"]),
        (False, False, ["1 2 4 5", "3"]),
        (False, True, ["1", "2", "3", "4", "5"]),
    ],
)
async def test_only_what_cannot_pass_each_other_flies_together(
    as_a_whole: bool, in_one_order: bool, flights: list[str]
) -> None:
    sender = Taker(takes, as_a_whole=as_a_whole)

    assert await handed(sender, "aba--", in_one_order=in_one_order) == 5 * [None]
    assert sender.flights == flights


async def test_nothing_takes_off_behind_one_that_failed_but_itself_alone() -> None:
    unknown = RuntimeError("what is that")
    sender = Taker(lambda number: unknown if number == "1" else None, as_a_whole=False)

    told = await handed(sender, "abaa")

    assert told == [unknown, None, None, None]
    assert sender.flights == ["1 2", "1", "3", "4"], (
        "the first one was tried alone before it counted as failed"
    )


async def test_what_a_batch_cannot_be_blamed_for_goes_in_alone() -> None:
    """A batch may be too large where none of its messages is."""
    sender = Taker(lambda _: RuntimeError() if len(sender.flights) == 1 else None, as_a_whole=True)

    assert await handed(sender, "abc") == [None, None, None]
    assert sender.flights == ["1 2 3", "1", "2", "3"]


async def test_after_a_flight_without_an_answer_each_of_its_events_is_tried_alone() -> None:
    """One of them may be what breaks the connection; the others must not wait for it for ever."""
    sender = Taker(lambda _: BrokerAway("gone") if len(sender.flights) == 1 else None, as_a_whole=True)
    events, opened = [event(at, "k") for at in (1, 2, 3, 4)], Open()

    first = await Flights(events[:3], outgoing, in_one_order=False).result(events[0], opened, sender)
    again = Flights(events, outgoing, in_one_order=False)
    told = [await again.result(each, opened, sender) for each in events]

    assert isinstance(first, BrokerAway) and told == 4 * [None]
    assert sender.flights == ["1 2 3", "1", "2", "3", "4"] and not opened.alone


@pytest.mark.outside("Redis")
async def test_a_server_without_memory_takes_none_of_a_flight(broker: RedisServer) -> None:
    """Not a first one that is large no, and a second one that is small yes: they would be out of order."""
    sender = RedisSender(broker.url, "s", None)
    with broker.client() as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", used + 2_000_000)
        large = [Outgoing("k", b"x" * 1_000_000, {}) for _ in range(8)]
        with pytest.raises(BrokerAway):
            for _ in range(
                8
            ):  # the server looks at its memory before each entry of a transaction that it queues
                await sender.send([*large, Outgoing("k", b"small", {})])
        held = client.xlen("s")
        client.config_set("maxmemory", 0)
        client.delete("s")
        client.set("s", "no stream")
        with pytest.raises(BrokerAway, match="WRONGTYPE"):
            await sender.send([Outgoing("k", b"1", {})])
        wrong = await sender.send([Outgoing("k", b"1", {}), Outgoing("k", b"2", {})])
    await sender.close()

    assert held % 9 == 0, "a part of a flight was taken"
    assert [type(each) for each in wrong] == [BrokerAway, BrokerAway]


@pytest.mark.outside("Redis")
async def test_events_of_a_partition_go_out_in_few_round_trips(app: App, broker: RedisServer) -> None:
    relay_out(app, "o", topics=["t"], to=RedisStream(broker.url, "o"), start="beginning", partitions=1)
    await apublish_many(app, [NewEvent("t", n, f"k{n % 3}") for n in range(150)])

    async with app.worker(slots=1):
        await auntil(app, lags, lambda found: found and not found[0].events)
    with broker.client() as client:
        calls = client.info("commandstats")["cmdstat_exec"]["calls"]

    assert [int(each["data"]) for each in entries(broker, "o")] == list(range(150))
    assert calls <= 10, "each event had an answer of its own"


def test_one_that_was_refused_between_others_is_refused_for_good() -> None:
    told = each_told([b"1-0", ResponseError("what is that"), b"2-0", ResponseError("what is that")])

    assert [type(each) for each in told] == [type(None), BrokerRefused, type(None), ResponseError]
