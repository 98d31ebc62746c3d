"""A declaration once it is checked: the machines of a table, its main one and those of its sub-states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from fencerow.guards.names import TableName
from fencerow.guards.transitions.declaring import Lease, Move, Overdue, sources_of
from fencerow.guards.transitions.errors import UnknownMove


@dataclass(frozen=True, slots=True)
class Machine:
    """One state column and its moves. The main one has no name; a sub-state is legal `within` main states only."""

    name: str
    column: str
    states: tuple[str | None, ...]
    moves: Mapping[str, Move]
    overdue: tuple[Overdue, ...] = ()
    within: tuple[str, ...] = ()

    def move(self, name: str) -> Move:
        """The move of that name.

        Raises:
            UnknownMove: there is none.
        """
        if name not in self.moves:
            raise unknown("move", name, self.moves, self.name)
        return self.moves[name]

    @property
    def leases(self) -> dict[str | None, Lease]:
        """The leased states, each with its lease."""
        return {move.target: move.lease for move in self.moves.values() if move.lease is not None}

    @property
    def is_reaped(self) -> bool:
        """Whether there is anything for the reaper to do."""
        leases = self.leases.values()
        return any(lease.when_stale or lease.when_spent for lease in leases) or any(
            overdue.move for overdue in self.overdue
        )

    def pairs(self, move: Move) -> Iterator[tuple[str | None, str | None]]:
        """From where to where it goes; a claim also takes a stale row of its own target again."""
        sources = (*sources_of(move), move.target) if move.lease else sources_of(move)
        for source in dict.fromkeys(sources):
            yield source, move.target

    def claim(self, name: str) -> tuple[Move, Lease]:
        """The claim of that name, with its lease.

        Raises:
            UnknownMove: there is none.
        """
        claims = {known: move for known, move in self.moves.items() if move.lease is not None}
        move = claims.get(name)
        if move is None or move.lease is None:
            raise unknown("claim", name, claims, self.name)
        return move, move.lease


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """Everything that was said about one table. `order` are the columns by which rows are taken, oldest first."""

    table: TableName
    id: str
    main: Machine
    subs: Mapping[str, Machine]
    order: tuple[str, ...] = ()
    version: str | None = None
    history: TableName | None = None

    @property
    def machines(self) -> tuple[Machine, ...]:
        return (self.main, *self.subs.values())


def unknown(kind: str, name: str, known: Mapping[str, object], machine: str) -> UnknownMove:
    """There is no such move, claim or sub-state."""
    of = f" of sub-state {machine!r}" if machine else ""
    close = get_close_matches(name, known, n=3)
    return UnknownMove(
        f"no {kind}{of} is called {name!r}",
        f"closest: {', '.join(close)}" if close else f"declared: {', '.join(known) or 'none'}",
        "correct the name, or declare it",
    )
