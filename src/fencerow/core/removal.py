"""Removing much in short transactions, without taking the database for itself, and only as much at once as it can do.

A removal says as `limit=` how many rows it takes at most; what fails because of its size is tried with fewer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from fencerow.core.db.engine import Engine
from fencerow.core.db.portion import Portion
from fencerow.core.db.run import Operation, Steps

T = TypeVar("T")


async def removed(engine: Engine, removal: Operation[int], *, limit: int) -> int:
    """Repeat a removal of at most `limit` rows until it has caught up, half of the time at most; returns how many."""
    total, portion = 0, Portion(removal.name, limit)
    while True:
        began = time.monotonic()
        count, at_most = await portion.fit(limit, partial(_some, engine, removal))
        total += count
        if count < at_most:
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
        self._portion: Portion | None = None

    async def round(self) -> None:
        """The next rows, from the first again after the last."""
        removal = self._removal(self._after)
        limit = _limit_of(removal)
        if self._portion is None:
            self._portion = Portion(removal.name, limit)
        self._after, _ = await self._portion.fit(limit, partial(_some, self._engine, removal))


async def _some(engine: Engine, removal: Operation[T], rows: int) -> tuple[T, int]:
    """Remove at most so many rows; returns what the removal does, and how many they were at most."""
    sized: Callable[[], Steps[T]] = partial(_made(removal), limit=rows)
    return await engine.arun(replace(removal, start=sized)), rows


def _limit_of(removal: Operation[T]) -> int:
    """How many rows it takes at most, as it was made."""
    limit = _made(removal).keywords["limit"]
    assert isinstance(limit, int)
    return limit


def _made(removal: Operation[T]) -> partial[Steps[T]]:
    assert isinstance(removal.start, partial)
    return removal.start
