"""Relays to and from a real Redis server, which is killed and started again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fencerow import App
from fencerow.events import NewEvent, apublish_many
from fencerow.relay import Message, RedisStream, relay_in, relay_out
from fencerow.relay.relays import listed, parts_of, pause, resume, unread
from fencerow.relay.verbs import Relays
from tests.relay.stage import RedisServer, auntil, books_of, entries, until

pytestmark = pytest.mark.outside("Redis")


async def test_events_go_out_in_their_order_and_none_is_lost_while_the_server_is_killed(
    app: App, broker: RedisServer
) -> None:
    relay_out(app, "orders", topics=["order.*"], to=RedisStream(broker.url, "orders"), start="beginning")
    await apublish_many(
        app, [NewEvent("order.paid", n, f"k{n % 3}", {"traceparent": f"00-{n}"}) for n in range(20)]
    )
    async with app.worker(slots=1):
        await until(lambda: len(entries(broker, "orders")) >= 20)
        broker.kill()
        await apublish_many(app, [NewEvent("order.paid", n, f"k{n % 3}") for n in range(20, 40)])
        (told,) = await auntil(app, listed, lambda found: found and found[0].trouble)
        broker.start()
        await until(lambda: len({each["fencerow-id"] for each in entries(broker, "orders")}) >= 40)
        await auntil(app, listed, lambda found: found[0].trouble is None)

    assert "FR-947" in told.trouble and told.readers == 1
    found = entries(broker, "orders")
    for key in ("k0", "k1", "k2"):
        seen = [int(each["data"]) for each in found if each["fencerow-key"] == key]
        assert sorted(dict.fromkeys(seen)) == list(dict.fromkeys(seen)), (
            "a later event came before an earlier one"
        )
    assert {each["data"] for each in found} == {str(n) for n in range(40)}
    first = found[0]
    assert first["fencerow-topic"] == "order.paid" and first["fencerow-kind"] == "event"
    assert first["traceparent"] == f"00-{first['data']}"


async def test_entries_become_jobs_once_and_what_cannot_be_read_is_put_aside(
    app: App, broker: RedisServer
) -> None:
    book, booked = books_of(app)

    @relay_in(app, "books", of=RedisStream(broker.url, "in", group="seen"), start="beginning")
    def take(message: Message) -> Any:
        return book.call(number=message.json())

    with broker.client() as client:
        for data in (b"0", b"{", b'"no number"', b"1"):
            client.xadd("in", {"data": data, "traceparent": "00-1"})
    async with app.worker(slots=1):
        await until(lambda: len(booked) >= 2)
        kept = await auntil(app, lambda: unread(limit=9), lambda found: len(found) == 2)
        (part,) = await auntil(app, lambda: parts_of("books"), lambda found: found[0].taken == 2)
        with broker.client() as client:
            (group,) = await until(lambda: client.xinfo_groups("in"))
            await Relays(app.client).amove("books", 0, "beginning")
        await auntil(app, lambda: parts_of("books"), lambda found: found[0].unread == 4)
        await auntil(app, lambda: parts_of("books"), lambda found: found[0].taken == 4)

    assert [each.raw for each in kept] == [b'"no number"', b"{"]
    assert "FR-" in kept[0].error and "is no JSON" in kept[1].error
    assert part.position.startswith(group["last-delivered-id"].decode())
    assert booked == [0, 1], "what was read twice was booked twice"


async def test_a_relay_that_rests_does_nothing_in_either_direction(app: App, broker: RedisServer) -> None:
    book, booked = books_of(app)
    relay_out(app, "out", topics=["t"], to=RedisStream(broker.url, "out"), start="beginning")

    @relay_in(app, "in", of=RedisStream(broker.url, "in"), start="beginning")
    async def take(message: Message) -> Any:
        return book.call(number=message.json()), NewEvent("seen", message.json())

    async with app.worker(slots=1):
        await auntil(app, listed, lambda found: len(found) == 2)
        for name in ("in", "out"):
            assert await app.engine.arun(pause(name, "for a test"))
    with broker.client() as client:
        client.xadd("in", {"data": b"1"})
    await apublish_many(app, [NewEvent("t", 1)])
    async with app.worker(slots=1):
        await auntil(app, listed, lambda found: all(each.readers for each in found))
        await asyncio.sleep(0)
        assert not entries(broker, "out") and not booked
        for name in ("in", "out"):
            assert await app.engine.arun(resume(name))
        await until(lambda: entries(broker, "out"))
        await until(lambda: booked)


@pytest.mark.parametrize("policy", ["earliest", "latest", "stop"])
async def test_what_was_trimmed_unread_is_counted_and_told(
    app: App, broker: RedisServer, policy: Any
) -> None:
    book, booked = books_of(app)

    @relay_in(app, "books", of=RedisStream(broker.url, "in"), start="beginning", when_gone=policy)
    def take(message: Message) -> Any:
        return book.call(number=message.json())

    with broker.client() as client:
        client.xadd("in", {"data": b"0"})
        async with app.worker(slots=1):
            await until(lambda: booked)
        for n in range(1, 6):
            client.xadd("in", {"data": str(n).encode()})
        client.xtrim("in", maxlen=2, approximate=False)
        async with app.worker(slots=1):
            (part,) = await auntil(app, lambda: parts_of("books"), lambda found: found[0].gone_at_us)
            if policy == "stop":
                assert part.stopped and "3 entries" in part.stopped
                await Relays(app.client).amove("books", 0, "beginning")
            client.xadd("in", {"data": b"6"})
            await until(lambda: 6 in booked)
            assert booked == ([0, 6] if policy == "latest" else [0, 4, 5, 6])
        client.delete("in")
        client.xadd("in", {"data": b"7"})
        async with app.worker(slots=1):
            await auntil(
                app, lambda: parts_of("books"), lambda found: found[0].stopped or found[0].generation == 2
            )
