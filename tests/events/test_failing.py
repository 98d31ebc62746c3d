"""What goes wrong around a handler: it takes too long, its process dies, its group lags behind retention."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Backoff, Fail, Retry
from fencerow.core.telemetry import Telemetry
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import ConfigError, DeclarationError, EventTransactionMisuse, InvalidTopic
from fencerow.events import Event, EventBus, HoldPartition, NewEvent, apublish, apublish_many, consumer
from fencerow.events.groups import GroupStart, make_group
from fencerow.events.retention import EventRetention
from fencerow.testing.clock import clock_of
from tests.events.conftest import app_on, url_of
from tests.events.dying import consume
from tests.kit.forking import context
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

SOON = Backoff(base_s=0.05, cap_s=0.05, jitter=0.0)


async def parked(app: App, count: int = 1) -> list[Any]:
    """The parked events, once there are so many."""
    async with asyncio.timeout(PATIENCE_S):
        while len(found := await EventBus(app).aparked()) < count:
            await asyncio.sleep(0.02)
    return [
        (each.event.data if each.event else None, each.error["type"].rpartition(".")[2]) for each in found
    ]


async def test_a_handler_that_takes_too_long_has_failed(app: App) -> None:
    @consumer(app, group="a", topics=["t"], start="beginning", timeout_s=0.1, deliveries_max=1)
    async def slow(event: Event) -> None:
        await asyncio.sleep(60)

    @consumer(app, group="b", topics=["t"], start="beginning", timeout_s=0.1, deliveries_max=1)
    def busy(event: Event) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            time.sleep(0.01)

    await apublish(app, "t", 1)
    async with app.worker():
        assert await parked(app, 2) == [("1", "DeliveryTimeout")] * 2


async def test_a_handler_says_what_becomes_of_a_delivery(app: App) -> None:
    seen: list[tuple[Any, int]] = []

    @consumer(app, group="a", topics=["t"], start="beginning", deliveries_max=5, backoff=Backoff(base_s=1000))
    async def choose(event: Event) -> None:
        seen.append((event.data, event.delivery))
        if event.data == "fail":
            raise Fail("never")
        if event.data == "retry" and event.delivery < 3:
            raise Retry(after_s=0.05)

    await apublish_many(app, [NewEvent("t", "fail"), NewEvent("t", "retry")])
    async with app.worker():
        assert [data for data, _ in await parked(app)] == ['"fail"']
        async with asyncio.timeout(PATIENCE_S):
            while ("retry", 3) not in seen:
                await asyncio.sleep(0.02)
    assert seen.count(("fail", 1)) == 1


async def test_a_handler_that_holds_its_partition_keeps_all_in_order_and_spends_nothing(app: App) -> None:
    seen: list[Any] = []
    away = 12  # more often than an event may fail

    @consumer(app, group="a", topics=["t"], start="beginning", partitions=1, deliveries_max=3, backoff=SOON)
    async def choose(event: Event) -> None:
        nonlocal away
        if event.data == "odd" and event.delivery == 1:
            raise Retry(after_s=0.01)  # put aside: it is tried again while the partition is held
        if away:
            away -= 1
            raise HoldPartition(1e-9)  # over before anybody looks: still nothing passes
        seen.append((event.data, event.delivery))

    await apublish_many(app, [NewEvent("t", each) for each in ("odd", 1, 2, 3)])
    async with app.worker():
        async with asyncio.timeout(PATIENCE_S):
            while len(seen) < 4:
                await asyncio.sleep(0.02)

    assert [each for each in seen if each[0] != "odd"] == [(1, 1), (2, 1), (3, 1)]
    assert ("odd", 2) in seen and not await EventBus(app).aparked()


async def test_an_event_that_kills_its_reader_is_parked(pg: PostgresEngine, tmp_path: Path) -> None:
    app = app_on(pg)
    await apublish_many(app, [NewEvent("t", "first"), NewEvent("t", "deadly"), NewEvent("t", "last")])
    told = await asyncio.to_thread(run_until_one_lives, url_of(pg), tmp_path / "told")
    found = await EventBus(app).aparked("g")
    assert [each.event.data for each in found if each.event] == ['"deadly"']
    assert found[0].error["code"] == "crashes_exhausted"
    assert told.splitlines()[-1] == "last" and "first" in told
    await app.aclose()


def run_until_one_lives(url: str, told: Path) -> str:
    """Start the process again and again, as a supervisor does; returns what was handled."""
    told.touch()
    for _ in range(8):
        process = context.Process(target=consume, args=(url, told), daemon=True)
        process.start()
        while process.is_alive() and not told.read_text().endswith("last\n"):
            process.join(0.05)
        if process.is_alive():
            time.sleep(1.0)  # it acknowledges
            process.kill()
            process.join()
            return told.read_text()
    raise AssertionError(f"no process came to the end: {told.read_text()}")


async def test_misuse_of_the_transaction_is_told(app: App) -> None:
    @consumer(app, group="sync", topics=["t"], start="beginning", deliveries_max=1)
    async def sync_in_async(event: Event) -> None:
        with event.transaction():
            pass

    @consumer(
        app, group="twice", topics=["t"], start="beginning", deliveries_max=1, fail_on=EventTransactionMisuse
    )
    async def twice(event: Event) -> None:
        transaction = event.transaction()
        async with transaction, event.transaction():
            pass

    await apublish(app, "t", 1)
    async with app.worker():
        assert await parked(app, 2) == [("1", "EventTransactionMisuse")] * 2


def test_wrong_declarations_are_refused(app: App) -> None:
    async def handler(event: Event) -> None: ...

    consumer(app, group="g", topics=["t"])(handler)
    with pytest.raises(DeclarationError, match="read by"):
        consumer(app, group="g", topics=["u"])(handler)
    for wrong in ({"partitions": 0}, {"partitions": 1000}, {"deliveries_max": 0}, {"timeout_s": 0.0}):
        with pytest.raises((DeclarationError, ConfigError)):
            consumer(app, group="h", topics=["t"], **wrong)
    with pytest.raises(InvalidTopic):
        consumer(app, group="h h", topics=["t"])
    with pytest.raises(DeclarationError):
        consumer(app, group="h", topics=["t"])(7)  # type: ignore[type-var]


async def test_a_group_is_told_before_its_events_are_cut(engine: AnyEngine) -> None:
    app = app_on(engine, retention_unread_events_s=60.0, retention_events_s=10.0)
    telemetry, told = Telemetry(), []

    def hear(name: str, facts: Mapping[str, Any]) -> None:
        told.append((str(name), facts.get("group") or facts.get("count")))

    telemetry.listen(hear)
    engine.run(make_group("lazy", ["t"], partitions=1, start=GroupStart("beginning")))
    await apublish(app, "t", 1)
    retention = EventRetention(engine, app.config, telemetry)
    await retention.round()
    assert ("events_at_risk", "lazy") not in told and ("events_lag", "lazy") in told

    clock = clock_of(engine)
    clock.advance(61)
    await retention.round()
    assert ("events_at_risk", "lazy") in told and (await EventBus(app).alag())[0].events == 1, (
        "told, and not yet cut"
    )
    clock.advance(7)
    await retention.round()
    assert ("events_trimmed", 1) in told and (await EventBus(app).alag())[0].events == 0
    await retention.round()
    assert (await EventBus(app).alag())[0].alarmed_at_us is None
    await app.aclose()
