"""What is known of a move, and what it did."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

# Hears which step is under way, how many rows of it are done, and of how many.
Tell = Callable[[str, int, int], object]


class NotedMove(msgspec.Struct, frozen=True):
    """A move as one of its two databases has noted it.

    `side`: whether the jobs go away `from` here, or come `to` here. `state`: draining, closed, moved; filling, open.
    `owner`: whose the payloads outside were.
    """

    id: str
    side: str
    state: str
    other: str
    owner: str | None
    since_us: int
    begun_by: str | None


class TableCount(msgspec.Struct, frozen=True):
    """How many rows a table has, and a checksum of what they say: the same in both databases, in whatever order."""

    rows: int = 0
    checksum: int = 0

    def without(self, other: TableCount) -> TableCount:
        """Those rows alone that the other does not count."""
        return TableCount(self.rows - other.rows, (self.checksum - other.checksum) % MODULUS)


MODULUS = 1 << 128


class MoveReport(msgspec.Struct, frozen=True):
    """What a move did, or would do.

    `tables`: how many rows of each went along; `staying`: the tables that did not, and why. `running`: jobs that a
    worker has. `outside`: jobs that refer to payloads outside of the database.
    """

    id: str | None
    source: str
    target: str
    state: str
    tables: dict[str, TableCount]
    staying: dict[str, str]
    running: int
    outside: int

    @property
    def rows(self) -> int:
        """Of all tables together."""
        return sum(each.rows for each in self.tables.values())
