"""Handlers that end in odd ways, or not at all: each is a failed delivery, and nothing else stands still for it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from typing import Any

import pytest

from fencerow import App, Backoff
from fencerow.db.postgres import PostgresEngine
from fencerow.events import Event, EventBus, NewEvent, apublish_many, consumer, delivery
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

ONCE: dict[str, Any] = {
    "topics": ["t"],
    "start": "beginning",
    "partitions": 1,
    "deliveries_max": 2,
    "backoff": Backoff(base_s=0.05, cap_s=0.05, jitter=0.0),
}
EVENTS = [NewEvent("t", "bad", key="bad"), NewEvent("t", "good", key="a"), NewEvent("t", "good", key="b")]


class Odd(BaseException):
    """No Exception."""


async def parked(app: App, count: int) -> dict[str, str]:
    """The error of what is parked, by group, once there is so much."""
    async with asyncio.timeout(PATIENCE_S):
        while len(found := await EventBus(app).aparked()) < count:
            await asyncio.sleep(0.02)
    assert {each.event.data for each in found if each.event} == {'"bad"'}
    return {each.group: each.error["type"].rpartition(".")[2] for each in found}


def raising(app: App, seen: Counter[str]) -> None:
    """Six groups whose handlers end "bad" by something that is no Exception."""

    def end(group: str, event: Event) -> None:
        seen[f"{group} {event.data}"] += 1
        if event.data == "bad":
            match group.partition("-")[0]:
                case "exit":
                    sys.exit(3)
                case "cancel":
                    raise asyncio.CancelledError
                case _:
                    raise Odd("x")

    for kind in ("exit", "cancel", "odd"):

        @consumer(app, group=f"{kind}-async", **ONCE)
        async def on_loop(event: Event) -> None:
            end(event.group, event)

        @consumer(app, group=f"{kind}-plain", **ONCE)
        def on_thread(event: Event) -> None:
            end(event.group, event)


async def test_what_is_no_exception_is_a_failure_too(app: App) -> None:
    seen: Counter[str] = Counter()
    raising(app, seen)
    await apublish_many(app, EVENTS)
    async with app.worker():
        types = await parked(app, 6)

    assert types == {
        f"{kind}-{style}": error
        for kind, error in (("exit", "SystemExit"), ("cancel", "RuntimeError"), ("odd", "Odd"))
        for style in ("async", "plain")
    }
    assert seen == {f"{group} {data}": 2 for group in types for data in ("bad", "good")}


def constrained(engine: PostgresEngine) -> None:
    """A table that refuses 99, when the transaction is committed."""
    with engine.session() as session:
        session.connection.execute("CREATE TABLE fencerow.parent (id integer PRIMARY KEY)")
        session.connection.execute("INSERT INTO fencerow.parent VALUES (1)")
        session.connection.execute(
            "CREATE TABLE fencerow.child (id integer REFERENCES fencerow.parent (id) INITIALLY DEFERRED)"
        )


async def test_a_refused_commit_is_a_failed_delivery(pg: PostgresEngine) -> None:
    app = app_on(pg)
    constrained(pg)

    def writing(event: Event) -> str:
        return f"INSERT INTO fencerow.child VALUES ({99 if event.data == 'bad' else 1})"

    @consumer(app, group="plain", **ONCE)
    def plain(event: Event) -> None:
        with event.transaction() as connection:
            connection.execute(writing(event))

    @consumer(app, group="async", **ONCE)
    async def on_loop(event: Event) -> None:
        async with event.transaction() as connection:
            await connection.execute(writing(event))

    await apublish_many(app, EVENTS)
    async with app.worker():
        types = await parked(app, 2)
        async with asyncio.timeout(PATIENCE_S):
            while sum(each.events for each in await EventBus(app).alag()):
                await asyncio.sleep(0.02)

    assert types == {"plain": "ForeignKeyViolation", "async": "ForeignKeyViolation"}
    assert {each.event.deliveries for each in await EventBus(app).aparked() if each.event} == {2}
    with pg.session() as session:
        rows = session.connection.execute("SELECT id FROM fencerow.child").fetchall()
    assert rows == [(1,)] * 4, "each good one once for each group"
    await app.aclose()


async def test_a_handler_that_does_not_end_when_told_is_left_behind(
    app: App, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "GRACE_S", 0.1)
    over, seen = asyncio.Event(), Counter[str]()

    @consumer(app, group="deaf", timeout_s=0.1, **ONCE)
    async def deaf(event: Event) -> None:
        seen[event.data] += 1
        while event.data == "bad" and not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    await apublish_many(app, EVENTS)
    async with app.worker():
        with caplog.at_level(logging.ERROR):
            assert await parked(app, 1) == {"deaf": "DeliveryTimeout"}
        async with asyncio.timeout(PATIENCE_S):
            while seen["good"] < 2:
                await asyncio.sleep(0.02)
        assert "left behind" in caplog.text
        over.set()


async def test_a_group_with_other_partitions_is_refused_and_the_rest_goes_on(
    engine: AnyEngine, caplog: pytest.LogCaptureFixture
) -> None:
    before, app, heard = app_on(engine), app_on(engine), asyncio.Event()

    @consumer(before, group="g", topics=["t"], partitions=8)
    async def old(event: Event) -> None: ...

    @consumer(app, group="g", topics=["t"], partitions=16)
    async def new(event: Event) -> None: ...

    @consumer(app, group="other", topics=["t"], start="beginning")
    async def other(event: Event) -> None:
        heard.set()

    @app.job
    async def double(number: int) -> int:
        return 2 * number

    await before.worker().run(until_idle=True)
    await apublish_many(app, EVENTS)
    async with app.worker(), asyncio.timeout(PATIENCE_S):
        with caplog.at_level(logging.ERROR):
            await heard.wait()
        handle = await double.asubmit(21)
        assert await handle.aresult(timeout_s=PATIENCE_S) == 42
    told = [each.getMessage() for each in caplog.records if "group g is not read" in each.getMessage()]
    assert len(told) == 1 and "has 8 partitions, its consumer declares 16" in told[0]
    await before.aclose()
    await app.aclose()


async def test_a_group_that_is_removed_under_its_readers_is_made_again(app: App) -> None:
    heard = asyncio.Event()

    @consumer(app, group="g", topics=["t"], start="beginning")
    async def note(event: Event) -> None:
        heard.set()

    async with app.worker(), asyncio.timeout(PATIENCE_S):
        await apublish_many(app, EVENTS)
        await heard.wait()
        await EventBus(app).aremove("g")
        heard.clear()
        await heard.wait()  # made again at the beginning of the log
