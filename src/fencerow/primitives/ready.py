"""Looks whether our tables are there once for each database, not with each use of a guard made on the spot."""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from fencerow.db.engine import Engine
from fencerow.primitives.place import Place

_ready: WeakSet[Engine] = WeakSet()


def check_tables(place: Place) -> None:
    """`place.check_or_create()` before the first use of its database in this process."""
    engine = place.engine
    if engine not in _ready:
        place.check_or_create()
        _ready.add(engine)


async def acheck_tables(place: Place) -> None:
    """`check_tables` without keeping the event loop waiting."""
    if place.engine not in _ready:
        await asyncio.to_thread(check_tables, place)
