"""Removing much in short transactions, without taking the database for itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Operation

T = TypeVar("T")


async def removed(engine: Engine, removal: Operation[int], *, limit: int) -> int:
    """Repeat a removal of at most `limit` rows until it has caught up, half of the time at most; returns how many."""
    total = 0
    while True:
        began = time.monotonic()
        count = await engine.arun(removal)
        total += count
        if count < limit:
            return total
        await asyncio.sleep(time.monotonic() - began)


class RemovalInRounds(Generic[T]):
    """A removal that looks at some rows in each round, in the order of their names: where few of many may go.

    `removal` is given the name after which to look, and returns the one where it ended, `first` behind the last.
    """

    def __init__(self, engine: Engine, removal: Callable[[T], Operation[T]], first: T) -> None:
        self._engine = engine
        self._removal = removal
        self._after = first

    async def round(self) -> None:
        """The next rows, from the first again after the last."""
        self._after = await self._engine.arun(self._removal(self._after))
