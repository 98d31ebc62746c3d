"""The whole way: published in a transaction, placed, delivered by a worker, acknowledged."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from fencerow import App
from fencerow.core.model.backoff import Backoff
from fencerow.events import (
    Event,
    EventBus,
    NewEvent,
    apublish,
    apublish_many,
    asides,
    consumer,
    consumers,
    publish,
)
from tests.core.store.stage import table
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

QUICK = Backoff(base_s=0.05, cap_s=0.05, jitter=0.0)


class Seen:
    """What handlers got, and a way to wait for it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._grown = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def note(self, event: Event) -> None:
        self.events.append(event)
        self._loop.call_soon_threadsafe(self._grown.set)

    @property
    def data(self) -> list[Any]:
        return [event.data for event in self.events]

    async def count(self, wanted: int) -> list[Any]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.events) < wanted:
                self._grown.clear()
                await self._grown.wait()
        return self.data


async def test_an_event_reaches_each_group_once(app: App) -> None:
    billing, mail = Seen(), Seen()

    @consumer(app, group="billing", topics=["order.*"])
    async def on_order(event: Event) -> None:
        billing.note(event)

    @consumer(app, group="mail", topics=["order.paid", "user.*"])
    def on_mail(event: Event) -> None:
        mail.note(event)

    async with app.worker():
        await until_made(app, 2)
        await apublish(app, "order.paid", {"order": 1}, key="ada", headers={"trace": "t1"})
        await apublish(app, "order.item.added", {"order": 2}, key="ada")
        await apublish(app, "user.new", "bob")
        assert await billing.count(2) == [{"order": 1}, {"order": 2}]
        assert sorted(map(str, await mail.count(2))) == ["bob", "{'order': 1}"]

    first = billing.events[0]
    assert (first.topic, first.key, first.headers, first.delivery) == (
        "order.paid",
        "ada",
        {"trace": "t1"},
        1,
    )
    assert first.position > 0 and first.published_at.tzinfo is not None


async def test_events_of_a_key_come_in_order(app: App) -> None:
    seen = Seen()

    @consumer(app, group="g", topics=["*"], start="beginning", partitions=4)
    async def note(event: Event) -> None:
        await asyncio.sleep(0)
        seen.note(event)

    await apublish_many(
        app, [NewEvent("t", [number % 7, number], key=str(number % 7)) for number in range(300)]
    )
    async with app.worker():
        await seen.count(300)
    by_key = defaultdict(list)
    for key, number in seen.data:
        by_key[key].append(number)
    assert all(numbers == sorted(numbers) for numbers in by_key.values()) and len(seen.data) == 300


async def test_what_was_rolled_back_was_never_published(app: App, engine: AnyEngine) -> None:
    app.check_or_create()
    with pytest.raises(RuntimeError), engine.session() as session:
        publish(app, "t", 1, connection=session.connection)
        raise RuntimeError
    with engine.session() as session:
        publish(app, "t", 2, connection=session.connection)

    seen = Seen()

    @consumer(app, group="g", topics=["t"], start="beginning")
    async def note(event: Event) -> None:
        seen.note(event)

    async with app.worker():
        assert await seen.count(1) == [2]
        await apublish(app, "t", 3)
        assert await seen.count(2) == [2, 3]


async def test_a_failing_event_lets_other_keys_pass_and_holds_its_own(app: App) -> None:
    order: list[Any] = []
    seen = Seen()

    @consumer(app, group="g", topics=["t"], partitions=1, deliveries_max=3, backoff=QUICK, start="beginning")
    async def picky(event: Event) -> None:
        order.append((event.data, event.delivery))
        if event.data == "bad":
            raise RuntimeError("not this one")
        seen.note(event)

    await apublish_many(
        app,
        [NewEvent("t", "bad", key="a"), NewEvent("t", "after", key="a"), NewEvent("t", "other", key="b")],
    )
    async with app.worker():
        assert await seen.count(2) == ["other", "after"]

    assert [each for each in order if each[0] == "bad"] == [("bad", 1), ("bad", 2), ("bad", 3)]
    assert order.index(("bad", 3)) < order.index(("after", 1)), "its key waits until it is parked"
    (parked,) = app.engine.run(asides.parked())
    assert parked.event is not None and parked.event.data == '"bad"'
    assert parked.error["message"] == "not this one"


async def test_a_redriven_event_is_delivered_again(app: App) -> None:
    seen, mended = Seen(), asyncio.Event()

    @consumer(app, group="g", topics=["t"], deliveries_max=1, start="beginning")
    async def picky(event: Event) -> None:
        if not mended.is_set():
            raise ValueError
        seen.note(event)

    await apublish(app, "t", 1)
    async with app.worker():
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await app.engine.arun(asides.parked("g"))):
                await asyncio.sleep(0.02)
        mended.set()
        assert await EventBus(app).aredrive("g") == [found[0].seq]
        assert await seen.count(1) == [1]
    assert await app.engine.arun(asides.parked()) == []


async def test_effects_in_the_transaction_go_with_the_acknowledgement(app: App, engine: AnyEngine) -> None:
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table(engine, 'effects')} (data INTEGER)")
    failures = [True, True]
    seen = Seen()

    @consumer(app, group="g", topics=["t"], partitions=1, backoff=QUICK, start="beginning")
    async def effect(event: Event) -> None:
        async with event.transaction() as connection:
            await execute(connection, f"INSERT INTO {table(engine, 'effects')} VALUES ({event.data})")
            if failures and failures.pop():
                raise RuntimeError("again")
        seen.note(event)

    await apublish_many(app, [NewEvent("t", number) for number in range(5)])
    async with app.worker():
        await seen.count(5)
    with engine.session() as session:
        rows = session.connection.execute(
            f"SELECT data FROM {table(engine, 'effects')} ORDER BY data"
        ).fetchall()
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4]


async def test_plain_functions_have_the_transaction_too(app: App, engine: AnyEngine) -> None:
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table(engine, 'effects')} (data INTEGER)")
    seen = Seen()

    @consumer(app, group="g", topics=["t"], partitions=1, start="beginning")
    def effect(event: Event) -> None:
        with event.transaction() as connection:
            connection.execute(f"INSERT INTO {table(engine, 'effects')} VALUES ({event.data})")
        seen.note(event)

    await apublish_many(app, [NewEvent("t", number) for number in range(5)])
    async with app.worker():
        await seen.count(5)
    with engine.session() as session:
        rows = session.connection.execute(f"SELECT data FROM {table(engine, 'effects')}").fetchall()
    assert len(rows) == 5


async def test_several_workers_share_the_partitions(app: App, engine: AnyEngine) -> None:
    other = app_on(engine)
    mine, theirs = Seen(), Seen()

    @consumer(app, group="g", topics=["t"])
    async def here(event: Event) -> None:
        mine.note(event)

    @consumer(other, group="g", topics=["t"])
    async def there(event: Event) -> None:
        theirs.note(event)

    async with app.worker(), other.worker():
        async with asyncio.timeout(PATIENCE_S):
            while True:
                rows = await app.engine.arun(consumers.partitions("g"))
                holders = [row.holder for row in rows]
                if len({*holders}) == 2 and None not in holders:
                    break
                await asyncio.sleep(0.05)
        assert sorted(holders.count(each) for each in {*holders}) == [4, 4]
        await apublish_many(app, [NewEvent("t", number, key=str(number)) for number in range(200)])
        async with asyncio.timeout(PATIENCE_S):
            while len(mine.events) + len(theirs.events) < 200:
                await asyncio.sleep(0.02)
    assert sorted(mine.data + theirs.data) == list(range(200))
    assert mine.data and theirs.data
    await other.aclose()


async def test_a_replay_delivers_again(app: App) -> None:
    seen = Seen()

    @consumer(app, group="g", topics=["t"], partitions=1, start="beginning")
    async def note(event: Event) -> None:
        seen.note(event)

    await apublish_many(app, [NewEvent("t", number) for number in range(4)])
    async with app.worker():
        await seen.count(4)
        await until_acknowledged(app)  # else the replay begins where the group stands, which is before
        third = seen.events[2].position
        done = await EventBus(app).areplay("g", third)
        assert (done.partitions, done.generation) == (1, 2)
        assert await seen.count(6) == [0, 1, 2, 3, 2, 3]


async def test_a_group_begins_after_what_has_committed(app: App) -> None:
    seen = Seen()

    @consumer(app, group="g", topics=["t"])
    async def note(event: Event) -> None:
        seen.note(event)

    await apublish(app, "t", "before")
    async with app.worker():
        await until_made(app, 1)
        await apublish(app, "t", "after")
        assert await seen.count(1) == ["after"]


async def test_the_ends_of_jobs_are_events_for_who_asked_before(app: App) -> None:
    seen = Seen()

    @app.job
    async def double(number: int) -> int:
        return 2 * number

    @app.job(attempts_max=1)
    async def broken() -> None:
        raise ValueError("no")

    @consumer(app, group="ends", topics=["job.*"])
    async def note(event: Event) -> None:
        seen.note(event)

    await double.asubmit(1)  # nobody has asked yet
    async with app.worker():
        await until_made(app, 1)
        handle = await double.asubmit(21)
        failing = await broken.asubmit()
        cancelled = await double.using(delay_s=1000).asubmit(1)
        await cancelled.acancel()
        await seen.count(3)
    told = {event.topic: event for event in seen.events}
    assert set(told) == {"job.succeeded", "job.failed", "job.cancelled"}
    good = told["job.succeeded"]
    assert (good.key, good.data["result"], good.data["name"]) == (handle.id, 42, "double")
    assert told["job.failed"].key == failing.id and told["job.failed"].data["error"]["message"] == "no"
    assert told["job.cancelled"].key == cancelled.id


async def until_acknowledged(app: App) -> None:
    """Until the groups are done with all that was published."""
    async with asyncio.timeout(PATIENCE_S):
        while any(each.events for each in await EventBus(app).alag()):
            await asyncio.sleep(0.02)


async def until_made(app: App, wanted: int) -> None:
    """Until the worker has made the groups."""
    app.check_or_create()
    async with asyncio.timeout(PATIENCE_S):
        while len(await EventBus(app).agroups()) < wanted:
            await asyncio.sleep(0.02)


async def execute(connection: Any, text: str) -> None:
    """On SQLite the connection of an async session is a plain one."""
    found = connection.execute(text)
    if asyncio.iscoroutine(found):
        await found


async def test_a_worker_that_ends_when_idle_delivers_first(app: App) -> None:
    seen = Seen()

    @consumer(app, group="g", topics=["t"], start="beginning")
    async def note(event: Event) -> None:
        await asyncio.sleep(0.01)
        seen.note(event)

    await apublish_many(app, [NewEvent("t", number) for number in range(30)])
    await app.worker().run(until_idle=True)
    assert sorted(seen.data) == list(range(30))
    assert (await EventBus(app).alag("g"))[0].events == 0


async def test_a_handler_that_cancels_itself_has_failed(app: App) -> None:
    @consumer(app, group="g", topics=["t"], start="beginning", deliveries_max=1)
    async def odd(event: Event) -> None:
        raise asyncio.CancelledError

    await apublish(app, "t", 1)
    async with app.worker(), asyncio.timeout(PATIENCE_S):
        while not (found := await EventBus(app).aparked()):
            await asyncio.sleep(0.02)
    assert "cancelled by its own code" in found[0].error["message"]
