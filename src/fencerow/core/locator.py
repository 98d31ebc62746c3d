"""Where an operation of a primitive runs: in a transaction of its own, or in the one that the user has open.

Whether our tables are there is looked at once for each database, not with each use of a guard made on the spot.
A worker has looked before it begins anything, so nothing looks inside a handler: on SQLite that would wait for the
write lock which `job.transaction()` holds in the very same thread.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar
from weakref import WeakSet

from fencerow.core.config import CoreConfig
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.borrow import borrowed
from fencerow.db.engine import Engine
from fencerow.db.run import Operation

T = TypeVar("T")

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


def run(place: Locator, operation: Operation[T], connection: object | None = None) -> T:
    """Run an operation on `connection`, inside the transaction that is open there, or else in one of its own.

    On a lent connection a refusal or an error costs only our part, never the user's transaction.

    Raises:
        UnusableConnection: the connection is closed, busy, failed, async, or to another database.
        RetryTransaction: roll the transaction back and run all of it again.
        BlockingCall: without a connection, inside a running event loop.
    """
    if connection is None:
        refuse_in_loop()
        return place.engine.run(operation)
    return borrowed(connection, place.engine).run(operation)


async def arun(place: Locator, operation: Operation[T], connection: object | None = None) -> T:
    """`run` for async code; the connection is an async one."""
    if connection is None:
        return await place.engine.arun(operation)
    return await borrowed(connection, place.engine).arun(operation)


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
