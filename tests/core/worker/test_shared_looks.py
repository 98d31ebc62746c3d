"""Chores that sleep until their wings have rows look together, and yet none believes what it has not asked."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from fencerow.core.background import used
from fencerow.core.background.dormant import Dormant
from fencerow.core.chore import Chore
from fencerow.core.model.ids import new_id
from fencerow.guards.once.window import admit
from tests.kit.jobs import AnyEngine


class Sweep(Chore):
    name = "sweep"

    async def tick(self) -> float:
        return 7.0


@pytest.fixture(autouse=True)
def _answers_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow a machine is."""
    monkeypatch.setattr(used, "SHARED_S", math.inf)


async def test_those_who_look_together_ask_once(engine: AnyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    arun = engine.arun

    async def counted(operation: Any) -> Any:
        asked.append(operation.name)
        return await arun(operation)

    monkeypatch.setattr(engine, "arun", counted)
    chores = [
        Dormant(name, lambda: engine, name, Sweep, every_s=5.0)
        for name in ("guards_used", "flows_used", "next_fall_back")
    ]

    await asyncio.gather(*(each.tick() for each in chores))  # each looks for the first time
    asked.clear()
    assert await asyncio.gather(*(each.tick() for each in chores)) == [5.0] * 3
    assert asked == ["which_are_used"]


async def test_who_heard_something_looks_afresh(engine: AnyEngine) -> None:
    first, second = (Dormant(name, lambda: engine, "guards_used", Sweep, every_s=5.0) for name in "ab")
    other = Dormant("other", lambda: engine, "flows_used", Sweep, every_s=5.0)
    assert [await each.tick() for each in (first, second, other)] == [5.0] * 3
    await other.tick()  # its look has an answer for the others as well, from before what comes now
    engine.run(admit("mails", "a", "1", new_id(), window_s=60.0))
    assert first.is_for(None)
    assert await first.tick() == 7.0
