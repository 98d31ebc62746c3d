"""What `drain` does besides jobs: the chores of an app, each until it has nothing more to do."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from fencerow.app import App
from fencerow.core.background.dormant import Dormant
from fencerow.core.background.sleepers import Sleepers
from fencerow.core.chore import Chore

PAUSE_S = 0.002
END_S = 1.0


async def do_chores(app: App, without: Collection[str] = ()) -> None:
    """Have all chores done, but those of these names: events are delivered, schedules fire, what is swept is swept."""
    for each in app.chores_of_worker(without):
        chore = each.for_worker()
        if not isinstance(chore, Dormant) or await _is_roused(chore):
            try:
                await _until_done(chore)
            finally:
                await chore.end(END_S)


async def _is_roused(dormant: Dormant) -> bool:
    """Look once, as a worker does, whether there is anything for it."""
    roused: list[Dormant] = []
    sleepers = Sleepers(roused.append)
    sleepers.add(dormant)
    await sleepers.tick()
    return bool(roused)


async def _until_done(chore: Chore) -> None:
    """Tick until it is at rest. What is delivered may publish more, which only the next tick can see."""
    pause_s = 0.0
    while pause_s <= 0 or not chore.is_idle:
        was_idle = chore.is_idle
        pause_s = await chore.tick()
        if was_idle and chore.is_idle:
            continue  # it had nothing under way, before or since
        while not chore.is_idle:
            await asyncio.sleep(PAUSE_S)
            await chore.tick()
        pause_s = await chore.tick()
