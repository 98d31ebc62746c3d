"""What `drain` does besides jobs: the chores of an app, each until it has nothing more to do."""

from __future__ import annotations

import asyncio
from typing import Protocol, runtime_checkable

from fencerow.app import App
from fencerow.core.chore import Chore, EndingChore, OwnChore

PAUSE_S = 0.002
END_S = 1.0


@runtime_checkable
class IdlingChore(Chore, Protocol):
    """A chore that has things under way between its ticks, as reading events has."""

    @property
    def is_idle(self) -> bool:
        """Whether everything that was there at the last tick is done."""
        ...


async def do_chores(app: App) -> None:
    """Have all chores done: events that were published are delivered, tables that are swept are swept."""
    for each in app.chores:
        chore = each.for_worker() if isinstance(each, OwnChore) else each
        try:
            await _until_done(chore)
        finally:
            if isinstance(chore, EndingChore):
                await chore.end(END_S)


async def _until_done(chore: Chore) -> None:
    """Tick until it is at rest. What is delivered may publish more, which only the next tick can see."""
    rested = False
    while not rested:
        pause_s = await chore.tick()
        if isinstance(chore, IdlingChore):
            while not chore.is_idle:
                await asyncio.sleep(PAUSE_S)
                await chore.tick()
            await chore.tick()
            rested = chore.is_idle
        else:
            rested = pause_s > 0
