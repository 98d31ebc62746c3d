"""Removing much in short transactions, without taking the database for itself, and only as much at once as it can do.

A removal says as `limit=` how many rows it takes at most; what fails because of its size is tried with fewer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import msgspec

from fencerow.db.engine import Engine
from fencerow.db.portion import Portion
from fencerow.db.run import Operation, Steps

T = TypeVar("T")

VAIN_S = 0.5  # of looks in one round that find little to remove


@dataclass(frozen=True, slots=True)
class Looked(Generic[T]):
    """What a removal that looks at some rows tells of its look.

    `after`: the name or place to go on after; the one from which all begins, when that was the last row. `rows`
    were looked at, and `gone` of them are removed.
    """

    after: T
    rows: int = 0
    gone: int = 0

    @property
    def is_worthwhile(self) -> bool:
        """Whether many of the rows could go, so that it pays to look at the next ones at once."""
        return self.gone * 10 >= self.rows > 0


async def removed(engine: Engine, removal: Operation[int], *, limit: int) -> int:
    """Repeat a removal of at most `limit` rows until it has caught up, half of the time at most; returns how many.

    For what an index finds: the rows that may go stand first, and a removal of none says that there are none.
    """
    total, portion = 0, Portion(removal.name, limit)
    while True:
        began = time.monotonic()
        count, at_most = await portion.fit(limit, partial(_some, engine, removal))
        total += count
        if count < at_most:
            return total
        await asyncio.sleep(time.monotonic() - began)


class RemovalInRounds(Generic[T]):
    """A removal that goes through all rows in the order of their names, some at each look: for rows of which no index
    says whether they may go.

    `removal` is given the name after which to look; `first` stands before all names.
    """

    def __init__(self, engine: Engine, removal: Callable[[T], Operation[Looked[T]]], first: T) -> None:
        self._engine = engine
        self._removal = removal
        self._first = self._after = first
        self._portion: Portion | None = None

    async def round(self) -> int:
        """Go on from where the last round ended, to the last row at most, half of the time at most; returns how many
        rows were removed.

        It goes on for as long as much of what it looks at can go: so the pace is that at which rows come. Looks among
        rows that stay are short of time, so that those cost no more when they are many.
        """
        total, vain_s = 0, 0.0
        while vain_s < VAIN_S:
            began = time.monotonic()
            looked = await self._look()
            took_s = time.monotonic() - began
            self._after = looked.after
            total += looked.gone
            if looked.after == self._first:
                break
            vain_s += 0.0 if looked.is_worthwhile else took_s
            await asyncio.sleep(took_s)
        return total

    async def _look(self) -> Looked[T]:
        """At the next rows, fewer where so many were too much at once."""
        removal = self._removal(self._after)
        limit = _limit_of(removal)
        if self._portion is None:
            self._portion = Portion(removal.name, limit)
        looked, _ = await self._portion.fit(limit, partial(_some, self._engine, removal))
        return looked


async def _some(engine: Engine, removal: Operation[T], rows: int) -> tuple[T, int]:
    """Remove at most so many rows; returns what the removal does, and how many they were at most."""
    sized: Callable[[], Steps[T]] = partial(_made(removal), limit=rows)
    return await engine.arun(msgspec.structs.replace(removal, start=sized)), rows


def _limit_of(removal: Operation[T]) -> int:
    """How many rows it takes at most, as it was made."""
    limit = _made(removal).keywords["limit"]
    assert isinstance(limit, int)
    return limit


def _made(removal: Operation[T]) -> partial[Steps[T]]:
    assert isinstance(removal.start, partial)
    return removal.start
