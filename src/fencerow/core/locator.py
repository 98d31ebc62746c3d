"""Where an operation of a primitive runs: in a database whose tables are what this code needs.

Whether our tables are there is looked at once for each database, not with each use of a guard made on the spot.
A worker has looked before it begins anything, so nothing looks inside a handler: on SQLite that would wait for the
write lock which `job.transaction()` holds in the very same thread.
"""

from __future__ import annotations

import asyncio
from typing import Protocol
from weakref import WeakSet

from fencerow.core.config import CoreConfig
from fencerow.db.engine import Engine

_ready: WeakSet[Engine] = WeakSet()


class Locator(Protocol):
    """What gives a guard its database: an `App`, or a `Database` in programs without jobs."""

    @property
    def config(self) -> CoreConfig:
        """The settings, from which primitives take their defaults."""
        ...

    @property
    def engine(self) -> Engine:
        """The database. Nothing is connected before the first operation."""
        ...

    def check_or_create(self) -> None:
        """Look whether Fencerow's tables are what this code needs; on SQLite missing ones are made.

        Raises:
            SchemaMissing, SchemaTooOld: run `fencerow migrate`.
            SchemaTooNew, SchemaTampered: this code must not work with this database.
        """
        ...


def note_ready(engine: Engine) -> None:
    """Somebody has looked: this database has the tables that this code needs."""
    _ready.add(engine)


def check_tables(place: Locator) -> None:
    """`place.check_or_create()` before the first use of its database in this process."""
    engine = place.engine
    if engine not in _ready:
        place.check_or_create()
        note_ready(engine)


async def acheck_tables(place: Locator) -> None:
    """`check_tables` without keeping the event loop waiting."""
    if place.engine not in _ready:
        await asyncio.to_thread(check_tables, place)
