"""Relays to and from Kafka, against the mock cluster of librdkafka: its protocol, none of a broker's disks."""

from __future__ import annotations

from typing import Any

from fencerow import App
from fencerow.events import NewEvent, apublish_many, asides
from fencerow.events.lag import lags
from fencerow.relay import KafkaTopic, Message, relay_in, relay_out
from fencerow.relay.relays import listed, parts_of, unread
from fencerow.relay.verbs import Relays
from tests.relay.stage import Cluster, auntil, books_of, until

TOO_LARGE = 1_000_000  # bytes: what a client sends at most, unless it is told otherwise


async def test_events_go_out_in_their_order_and_what_is_too_large_is_parked(
    app: App, cluster: Cluster
) -> None:
    relay_out(app, "orders", topics=["order.*"], to=KafkaTopic(cluster.servers, "orders"), start="beginning")
    events = [NewEvent("order.paid", n, f"k{n % 3}", {"traceparent": f"00-{n}"}) for n in range(30)]
    await apublish_many(app, [*events[:15], NewEvent("order.large", "x" * TOO_LARGE, "k0"), *events[15:]])
    async with app.worker():
        (parked,) = await auntil(app, lambda: asides.parked(None), lambda found: len(found) == 1)
        await auntil(app, lags, lambda found: not found[0].events)
        (known,) = await app.engine.arun(listed())

    found = cluster.received("orders")
    assert parked.event.topic == "order.large" and "FR-948" in parked.error["message"]
    for key in (b"k0", b"k1", b"k2"):
        assert len({each.partition() for each in found if each.key() == key}) == 1
        seen = [int(each.value()) for each in found if each.key() == key]
        assert seen == sorted(seen) and len(seen) == 10
    headers = dict(found[0].headers())
    assert headers["fencerow-topic"] == b"order.paid" and headers["traceparent"] == b"00-" + found[0].value()
    assert known.trouble is None and known.direction == "out"


async def test_messages_of_all_partitions_become_jobs_once_each_and_bad_ones_are_put_aside(
    app: App, cluster: Cluster
) -> None:
    book, booked = books_of(app)

    @relay_in(
        app,
        "books",
        of=KafkaTopic(cluster.servers, "in", group="seen"),
        start="beginning",
        unread_topic="bad",
    )
    def take(message: Message) -> Any:
        return book.call(number=message.json())

    for part in range(2):
        cluster.send("in", *(str(10 * part + n).encode() for n in range(3)), b"{", part=part, key=b"k")
    async with app.worker(slots=1):
        await until(lambda: len(booked) == 6)
        kept = await auntil(app, lambda: unread(limit=9), lambda found: len(found) == 2)
        cluster.send("in", b"99", part=1)
        await until(lambda: 99 in booked)
        await Relays(app.client).amove("books", 0, "1", again=True)
        await until(lambda: len(booked) == 9)

    assert sorted(booked) == [0, 1, 1, 2, 2, 10, 11, 12, 99]
    assert {each.key for each in kept} == {"k"} and {each.raw for each in kept} == {b"{"}
    parts = await app.engine.arun(parts_of("books"))
    assert {each.part: (each.position, each.taken, each.unread) for each in parts if each.taken} == {
        0: ("4", 5, 2),
        1: ("5", 4, 1),
    }


async def test_a_topic_that_was_trimmed_or_made_anew_is_told_and_read_on(app: App, cluster: Cluster) -> None:
    book, booked = books_of(app)

    @relay_in(app, "books", of=KafkaTopic(cluster.servers, "in"), start="beginning")
    def take(message: Message) -> Any:
        return book.call(number=1)

    cluster.send("in", b"first")
    async with app.worker(slots=1):
        await until(lambda: booked)
        await Relays(app.client).amove("books", 0, "1000")  # as if the cluster had lost what it had
        found = await auntil(app, lambda: parts_of("books"), lambda found: found[0].gone_at_us)

    assert (found[0].position, found[0].generation) in (("0", 2), ("1", 2))
    assert found[0].gone == 0, "nobody can say how many"
