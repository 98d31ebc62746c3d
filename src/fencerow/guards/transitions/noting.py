"""What is written beside a move that happened, in its own transaction: a history row, and what a hook adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencerow.db.run import Steps, execute_composed
from fencerow.guards.transitions.composing import Written
from fencerow.guards.transitions.declaring import Lease, Move
from fencerow.guards.transitions.facts import HISTORY
from fencerow.guards.transitions.machine import DeclaredTable, Machine
from fencerow.guards.transitions.outcome import Moved, Record


class Publisher(Protocol):
    """Something that gets each move inside its transaction, such as an event bus."""

    def publish(self, moved: Moved) -> Steps[object]:
        """Statements that commit together with the move; none if nobody is interested in it."""
        ...

    def wake_ups(self) -> list[str]:
        """The wake-ups to send once a move is committed. They are hints, and on a borrowed connection none is sent."""
        ...


class Noting:
    """Writes what is wanted beside each move."""

    def __init__(self, written: Written, publisher: Publisher | None) -> None:
        self._written = written
        self._declared: DeclaredTable = written.declared
        self._publisher = publisher

    @property
    def wanted(self) -> bool:
        """Whether a move is more than its own statement."""
        return self._publisher is not None or self._declared.history is not None

    def note(self, machine: Machine, move: Move, source: str | None, rows: Sequence[Record]) -> Steps[None]:
        """Note that these rows were moved from that state."""
        if not self.wanted:
            return
        for row in rows:
            moved = self._moved(machine, move, source, row)
            if self._declared.history is not None:
                yield from self._write(moved)
            if self._publisher is not None:
                yield from self._publisher.publish(moved)

    def _moved(self, machine: Machine, move: Move, source: str | None, row: Record) -> Moved:
        lease: Lease | None = move.lease or machine.leases.get(source)
        return Moved(
            str(self._declared.table),
            row[self._declared.id],
            machine.name or None,
            move.name,
            source,
            move.target,
            None if lease is None else row[lease.fence],
            row,
        )

    def _write(self, moved: Moved) -> Steps[None]:
        query = self._written.history_row(HISTORY)
        yield from execute_composed(
            query,
            {
                "fencerow_id": moved.id,
                "fencerow_sub": moved.sub,
                "fencerow_move": moved.move,
                "fencerow_source": moved.source,
                "fencerow_target": moved.target,
                "fencerow_fence": moved.fence,
            },
        )
