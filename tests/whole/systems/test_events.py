"""The event bus of flydocs (pyfly's PostgresEventBus) and the streams of ChatbotX, on Fencerow's events."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from fencerow import App, Backoff, Config
from fencerow.events import Event, EventBus, NewEvent, apublish_many, consumer
from tests.kit.pace import PATIENCE_S, slower

QUICK = Config(lease_s=slower(3.0), renew_s=0.4, poll_max_s=0.1, poll_min_s=0.01)
TWENTY = [NewEvent("extraction.submitted", number, key="extractions") for number in range(20)]
SOON = Backoff(base_s=0.05, cap_s=0.05, jitter=0.0)

Handled = list[Any]


@pytest.fixture
async def apps(url: str) -> AsyncIterator[list[App]]:
    """Two processes of one system, as far as the database can tell."""
    made = [App(url, config=QUICK) for _ in range(2)]
    made[0].migrate()
    yield made
    for app in made:
        await app.aclose()


def reading(app: App, group: str, handled: Handled, **options: Any) -> None:
    @consumer(app, group=group, topics=["extraction.*", "message.*"], start="beginning", **options)
    async def note(event: Event) -> None:
        handled.append(event.data)


@pytest.mark.scenario("A.1")
async def test_two_instances_of_one_group_handle_each_event_once_in_order(apps: list[App]) -> None:
    handled: Handled = []
    for app in apps:
        reading(app, "workers", handled)

    async with apps[0].worker(), apps[1].worker():
        await apublish_many(apps[0], TWENTY)
        await until(lambda: len(handled) >= 20)
        await until_read(apps[0], "workers")

    assert handled == list(range(20))


@pytest.mark.scenario("A.2")
async def test_two_groups_each_see_every_event(apps: list[App]) -> None:
    first: Handled = []
    second: Handled = []
    reading(apps[0], "workers", first)
    reading(apps[1], "webhooks", second)

    async with apps[0].worker(), apps[1].worker():
        await apublish_many(apps[0], TWENTY)
        await until(lambda: len(first) >= 20 and len(second) >= 20)

    assert first == second == list(range(20))


@pytest.mark.scenario("A.16")
async def test_a_poison_event_does_not_block_its_group(apps: list[App]) -> None:
    app, handled, tries = apps[0], [], []

    @consumer(
        app, group="workers", topics=["*"], start="beginning", partitions=1, deliveries_max=3, backoff=SOON
    )
    async def picky(event: Event) -> None:
        if event.data == 3:
            tries.append(event.delivery)
            raise RuntimeError("poison")
        handled.append(event.data)

    await apublish_many(
        app, [NewEvent("extraction.submitted", number, key=str(number)) for number in range(20)]
    )
    async with app.worker():
        await until(lambda: len(handled) == 19)
        bus = EventBus(app)
        await until(lambda: bus.aparked("workers"))
        (parked,) = await bus.aparked("workers")

    assert handled == [number for number in range(20) if number != 3], "the others came in order, and at once"
    assert tries == [1, 2, 3]
    assert parked.event is not None and parked.event.data == "3" and parked.error["message"] == "poison"


@pytest.mark.scenario("D.15")
async def test_what_a_dead_consumer_held_is_taken_over(apps: list[App], url: str) -> None:
    app, handled = apps[0], []
    await apublish_many(app, [NewEvent("message.new", number, key=str(number % 4)) for number in range(12)])
    await asyncio.to_thread(die_holding, url)

    @consumer(
        app,
        group="senders",
        topics=["message.*"],
        start="beginning",
        partitions=2,
        deliveries_max=2,
        backoff=SOON,
    )
    async def send(event: Event) -> None:
        if event.data == 7:
            raise RuntimeError("no such channel")
        handled.append(event.data)

    bus = EventBus(app)
    async with app.worker():
        await until(lambda: len(handled) == 11)
        await until(lambda: bus.aparked("senders"))
    assert sorted(handled) == [number for number in range(12) if number != 7]
    for key in range(4):
        assert [each for each in handled if each % 4 == key] == sorted(
            each for each in handled if each % 4 == key
        )
    estimate = await bus.aretention_estimate(keep=100_000)
    assert estimate.head == 12 and estimate.oldest_age_s is not None


def die_holding(url: str) -> None:
    """Another process takes an event, and is killed with it in its hands."""
    command = [sys.executable, "-m", "tests.whole.systems.holder", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip().isdigit()
        holder.kill()


async def until(happened: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = happened()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return
            await asyncio.sleep(0.02)


async def until_read(app: App, group: str) -> None:
    async def read() -> bool:
        (lag,) = await EventBus(app).alag(group)
        return lag.events == 0

    await until(read)
