"""The verbs of one state column: moves, claims, renewals, what is stuck, the reaper. With an `a` for async code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencerow.core.verb import averb, verb
from fencerow.guards.transitions.asking import ask, ask_many, ask_renewal
from fencerow.guards.transitions.errors import InvalidMove
from fencerow.guards.transitions.machine import Machine
from fencerow.guards.transitions.outcome import Reaped, Record, Refusal, Stuck
from fencerow.guards.transitions.procedures import MoveProcedures
from fencerow.located import LocatorProcedure, LocatorVerbs

MANY = 100


class Moves(LocatorVerbs):
    """The moves of a table's main state, or of one of its sub-states.

    With `connection` a verb runs inside the transaction that is open there, and is committed or rolled back
    with it; a refusal does not harm that transaction. Without it each verb is a transaction of its own.

    Every verb raises, besides what is said at each:
        WrongTable: the table is not what was declared; found before the first use, or by the database.
        RetryTransaction: on a borrowed connection; roll the transaction back and run all of it again.
    """

    def __init__(self, procedures: MoveProcedures, machine: Machine) -> None:
        super().__init__(procedures.place)
        self._procedures = procedures
        self._machine = machine

    @property
    def is_reaped(self) -> bool:
        """Whether there is anything for the reaper to do."""
        return self._machine.is_reaped

    # --- one row ---------------------------------------------------------------------------------

    @verb
    def move(
        self,
        name: str,
        id: Any,  # noqa: A002 (the word of the table)
        *,
        fence: int | None = None,
        values: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        connection: object | None = None,
    ) -> LocatorProcedure[Record | None]:
        """Make a move and return the row as it is now; None means that nothing happened.

        This is one UPDATE that names the states it may start from, so of several callers exactly one wins.
        `fence` is what the claim returned in its fence column, `values` are columns to set, `params` those of
        the move's condition.

        Raises:
            UnknownMove: no move has that name.
            InvalidMove: a fence, value or parameter is missing, or this move does not take it. Nothing was
                sent.
        """
        asked = ask(self._machine, name, id, fence=fence, values=values, params=params)
        return (yield from self._procedures.making(lambda make: make.move(self._machine, asked), connection))

    amove = averb(move)

    @verb
    def move_or_why(
        self,
        name: str,
        id: Any,  # noqa: A002
        *,
        fence: int | None = None,
        values: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        connection: object | None = None,
    ) -> LocatorProcedure[Record | Refusal]:
        """Like `move`, but says why not: the row is gone, or its state does not fit. A later statement reads that."""
        asked = ask(self._machine, name, id, fence=fence, values=values, params=params)
        return (
            yield from self._procedures.making(
                lambda make: make.move_or_why(self._machine, asked), connection
            )
        )

    amove_or_why = averb(move_or_why)

    @verb
    def read(self, id: Any, *, connection: object | None = None) -> LocatorProcedure[Record | None]:  # noqa: A002
        """The row as it stands; None if there is none. After an OutcomeUnknown: look at its state and its fence."""
        return (yield from self._procedures.making(lambda make: make.read(id), connection))

    aread = averb(read)

    @verb
    def renew(
        self,
        claim: str,
        id: Any,  # noqa: A002
        *,
        fence: int,
        values: Mapping[str, Any] | None = None,
        connection: object | None = None,
    ) -> LocatorProcedure[Record | None]:
        """Renew the lease of a claimed row, and write progress. None: you no longer hold the row, so stop
        working on it."""
        asked = ask_renewal(self._machine, claim, id, fence=fence, values=values)
        return (yield from self._procedures.making(lambda make: make.renew(self._machine, asked), connection))

    arenew = averb(renew)

    # --- many rows -------------------------------------------------------------------------------

    @verb
    def take(
        self,
        name: str,
        count: int = 1,
        *,
        values: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        connection: object | None = None,
    ) -> LocatorProcedure[list[Record]]:
        """Make a move, mostly a claim, with up to `count` rows that may make it, and return them in no order.

        They are chosen by the columns of `order`; those whose lease ran out come first. Rows that others have
        locked are skipped, so an empty answer does not mean that there are none.

        Raises:
            UnknownMove: no move has that name. InvalidMove: it cannot be made with many, or `count` is below 1.
        """
        positive(count)
        asked = ask_many(self._machine, name, values=values, params=params)
        return (
            yield from self._procedures.making(
                lambda make: make.take(self._machine, asked, count), connection
            )
        )

    atake = averb(take)

    @verb
    def find_stuck(
        self, *, count: int = MANY, connection: object | None = None
    ) -> LocatorProcedure[list[Stuck]]:
        """Rows that have been in a state for too long: past their lease, or past a declared age. Changes nothing.

        Up to `count` for each state, the oldest first. A leased row that nobody stamped is among them.
        """
        positive(count)
        return (
            yield from self._procedures.making(lambda make: make.find_stuck(self._machine, count), connection)
        )

    afind_stuck = averb(find_stuck)

    @verb
    def reap(self, *, count: int = MANY, connection: object | None = None) -> LocatorProcedure[Reaped]:
        """Make the declared moves with rows that are past their lease, their attempts or their age, up to
        `count` rows each.

        Safe in any number of processes at once: the UPDATE itself checks again whether the time is past.
        """
        positive(count)
        return (yield from self._procedures.making(lambda make: make.reap(self._machine, count), connection))

    areap = averb(reap)


def positive(count: int) -> None:
    """Refuse to ask for no rows."""
    if count < 1:
        raise InvalidMove(f"count is {count!r}", "expected a whole number of at least 1", "ask for some rows")
