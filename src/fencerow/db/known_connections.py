"""Which database an engine works in, and which borrowed connections were found to lead there.

The names of our tables are the same in every database. So what is written through a connection to another one would
arrive, and no worker of this app would ever look there. Each connection is asked once, before the first of our
statements on it. A connection to a standby is left alone: the server itself refuses a write there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakSet

from fencerow.db.errors import OtherDatabase
from fencerow.db.run import Rows, Runner, Steps, execute, operation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KnownDatabase:
    """One database of one running server. `identity` is never the same for two of them at one time."""

    name: str
    identity: str
    is_standby: bool

    @staticmethod
    def of(rows: Rows) -> KnownDatabase:
        """From the row of the query `database_here`."""
        name, identity, is_standby = rows[0]
        return KnownDatabase(str(name), str(identity), bool(is_standby))


@operation(alone=True, repeatable=True, writes="")
def database_here() -> Steps[KnownDatabase]:
    """The database in which this runs."""
    return KnownDatabase.of((yield from execute("database_here")))


class KnownConnections:
    """The database of one engine, and the connections that lead there, for as long as somebody holds them."""

    def __init__(self) -> None:
        self._database: KnownDatabase | None = None
        self._connections: WeakSet[Any] = WeakSet()

    def has(self, connection: object) -> bool:
        """Whether this connection was found to lead here."""
        return connection in self._connections

    def compare(self, connection: object, there: KnownDatabase, kind: str) -> None:
        """Compare what a connection said with what our engine said.

        Raises:
            OtherDatabase: it leads to another database.
        """
        here = self._database
        if there.is_standby:
            return
        if here is None or there.identity != here.identity:
            raise _other_database(there, here, kind)
        self._connections.add(connection)

    def run(self, engine: Runner, once: Callable[[], T]) -> T:
        """Run what compares connections with it. Where one seems to lead elsewhere, our engine is asked where it
        is now: it was never asked before, or a failover has brought it to another server. Then it is run again.
        """
        before = self._database  # read first: while this one compares, another thread may write its answer
        try:
            return once()
        except OtherDatabase:
            self._database = here = engine.run(database_here())
            if here == before:
                raise
        return once()

    async def arun(self, engine: Runner, once: Callable[[], Awaitable[T]]) -> T:
        """`run` in this event loop."""
        before = self._database  # as in `run`
        try:
            return await once()
        except OtherDatabase:
            self._database = here = await engine.arun(database_here())
            if here == before:
                raise
        return await once()


def _other_database(there: KnownDatabase, here: KnownDatabase | None, kind: str) -> OtherDatabase:
    name = "" if here is None else here.name
    server = " on another server" if there.name == name else ""
    return OtherDatabase(
        f"this {kind} leads to database {there.name!r}{server}",
        f"the jobs of this app are in database {name!r}, and its workers would never look elsewhere",
        "pass a connection to the database of the app's URL; nothing was written",
    )
