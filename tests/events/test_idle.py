"""A worker that ends when nothing is left handles what was published, be it that it hears of it or not."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from fencerow import App
from fencerow.events import Event, apublish, consumer
from fencerow.events.chore import EventsChore
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S


async def test_an_event_of_which_nobody_has_heard_yet_is_handled_and_so_is_the_job_that_it_leads_to(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with aclosing(app_on(engine, poll_max_s=2.0)) as app:
        await _ordered_and_shipped(app, monkeypatch)


async def _ordered_and_shipped(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = list[int]()

    @app.job
    async def ship(number: int) -> None:
        shipped.append(number)

    @app.job
    async def order(number: int) -> None:
        await apublish(app, "ordered", number)

    @consumer(app, group="shipping", topics=["ordered"], start="beginning")
    async def take(event: Event) -> None:
        await ship.asubmit(event.data)

    monkeypatch.setattr(EventsChore, "is_for", lambda *_: False)
    for number in range(3):
        await order.asubmit(number)
        async with asyncio.timeout(PATIENCE_S):
            await app.worker().run(until_idle=True)
        assert shipped == list(range(number + 1))
