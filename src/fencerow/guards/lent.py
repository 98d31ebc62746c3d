"""Work on a connection that the caller lent: which attempt that is, and what was marked in a transaction there."""

from __future__ import annotations

from typing import TypeVar

from fencerow.core.errors import UnusableConnection
from fencerow.core.locator import Locator
from fencerow.core.store.running import Running, running
from fencerow.db.borrow import borrowed
from fencerow.db.run import Operation
from fencerow.located import arun, run

T = TypeVar("T")


async def arun_back(place: Locator, operation: Operation[T], connection: object | None) -> T:
    """`arun` at the end of an async block, for what was marked in the caller's transaction on `connection`.

    It was marked by a sync verb if the connection is a sync one. Such a one inside an event loop is the caller's own
    affair, and SQLite's `job.transaction()` lends it.
    """
    if connection is not None and not borrowed(connection, place.engine).is_async:
        return run(place, operation, connection)
    return await arun(place, operation, connection)


def still_open(place: Locator, connection: object) -> bool:
    """Whether a transaction of the caller's is open on a connection. Asks nobody, and begins none."""
    try:
        return borrowed(connection, place.engine).is_open()
    except UnusableConnection:
        return False  # closed, most likely: whatever was open there has ended


def running_on(connection: object | None) -> Running | None:
    """The attempt that this code runs in, if any, for an operation on this connection."""
    attempt = running.get()
    return None if attempt is None else attempt.on(connection)
