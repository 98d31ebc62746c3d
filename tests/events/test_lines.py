"""What the handlers of consumers log says which event they handle."""

from __future__ import annotations

import asyncio
import logging

import pytest

from fencerow import App
from fencerow.events import Event, NewEvent, apublish_many, consumer
from fencerow.logs import LogFields
from tests.kit.pace import PATIENCE_S

log = logging.getLogger("shop")


async def test_lines_of_consumers_carry_their_event(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "shop")
    caplog.handler.addFilter(fields := LogFields())
    handled = [asyncio.Event(), asyncio.Event()]
    loop = asyncio.get_running_loop()

    @consumer(app, group="on-loop", topics=["order.*"], start="beginning")
    async def on_loop(event: Event) -> None:
        log.info("%d %s", event.id, event.group)
        handled[0].set()

    @consumer(app, group="on-thread", topics=["order.*"], start="beginning")
    def on_thread(event: Event) -> None:
        log.info("%d %s", event.id, event.group)
        loop.call_soon_threadsafe(handled[1].set)

    await apublish_many(app, [NewEvent("order.paid", 1)])
    async with app.worker(), asyncio.timeout(PATIENCE_S):
        for each in handled:
            await each.wait()
    caplog.handler.removeFilter(fields)

    told = {
        (record.getMessage(), f"{found['event_id']} {found['group']}", found["topic"], found["delivery"])
        for record in caplog.records
        if record.name == "shop" and (found := vars(record))
    }
    assert {group.partition(" ")[2] for group, *_ in told} == {"on-loop", "on-thread"}
    assert all(
        said == carried and (topic, delivery) == ("order.paid", 1) for said, carried, topic, delivery in told
    )
