"""Looks whether our tables are there once for each database, not with each use of a guard made on the spot.

A worker has looked before it begins anything, so nothing looks inside a handler: on SQLite that would wait for the
write lock which `job.transaction()` holds in the very same thread.
"""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from fencerow.core.db.engine import Engine
from fencerow.core.db.place import Place

_ready: WeakSet[Engine] = WeakSet()


def note_ready(engine: Engine) -> None:
    """Somebody has looked: this database has the tables that this code needs."""
    _ready.add(engine)


def check_tables(place: Place) -> None:
    """`place.check_or_create()` before the first use of its database in this process."""
    engine = place.engine
    if engine not in _ready:
        place.check_or_create()
        note_ready(engine)


async def acheck_tables(place: Place) -> None:
    """`check_tables` without keeping the event loop waiting."""
    if place.engine not in _ready:
        await asyncio.to_thread(check_tables, place)
