"""Each verb as one operation: the guarded statement, then what is to be noted of a move that happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fencerow.core.store.running import Running
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Steps, execute_composed
from fencerow.guards.checked import hold_attempt
from fencerow.guards.transitions.asking import MoveRequest
from fencerow.guards.transitions.composing import Written
from fencerow.guards.transitions.declaring import Lease, Move, sources_of
from fencerow.guards.transitions.handing import HandedFence
from fencerow.guards.transitions.machine import Machine
from fencerow.guards.transitions.noting import Noting
from fencerow.guards.transitions.outcome import Reaped, Record, Refusal, Stuck
from fencerow.guards.transitions.refusing import refusal


class Operations:
    """The operations on one table, as runners take them: our pool, a lent connection, or an explorer."""

    def __init__(
        self,
        written: Written,
        noting: Noting,
        attempt: Running | None = None,
        handover: HandedFence | None = None,
    ) -> None:
        self._written = written
        self._noting = noting
        self._attempt = attempt  # what the moves are made on behalf of, if that shall hold its job
        self._handover = handover  # of the attempt that this code runs in, if the database can note it

    def move(self, machine: Machine, asked: MoveRequest) -> Operation[Record | None]:
        """Make a move; None means that its guard refused."""

        def steps() -> Steps[Record | None]:
            return (yield from self._move(machine, asked))

        noted = self._noting.wanted or self._leased(asked.move) is not None
        return Operation("transition", steps, alone=not noted and self._attempt is None)

    def move_or_why(self, machine: Machine, asked: MoveRequest) -> Operation[Record | Refusal]:
        """The same, and why not: read in a later statement, which sees what was committed meanwhile."""

        def steps() -> Steps[Record | Refusal]:
            row = yield from self._move(machine, asked)
            if row is not None:
                return row
            found = yield from execute_composed(self._written.standing(), {"fencerow_id": asked.id})
            return refusal(self._written.declared, machine, asked, found[0] if found else None)

        return Operation("transition", steps)

    def take(self, machine: Machine, asked: MoveRequest, count: int) -> Operation[list[Record]]:
        """Make a move with up to `count` rows that may make it; rows that others hold locked are left out."""

        def steps() -> Steps[list[Record]]:
            yield from hold_attempt(self._attempt)
            taken: list[Record] = []
            for source, condition in self._ways(machine, asked.move):
                if len(taken) == count:
                    break
                query = self._written.batch(
                    machine, asked.move, source, condition, self._written.declared.order, asked.columns
                )
                params = {**asked.params, **self._left_params(), "fencerow_n": count - len(taken)}
                rows = yield from execute_composed(query, params)
                assert len(rows) <= params["fencerow_n"], "more rows were taken than asked for"
                yield from self._noted(machine, asked.move, source, rows)
                taken += rows
            return taken

        return Operation("take", steps)

    def renew(self, machine: Machine, asked: MoveRequest) -> Operation[Record | None]:
        """Begin the lease anew; None means that the row is no longer held under this fence."""
        assert asked.move.lease is not None
        query = self._written.renewal(machine, asked.move, asked.move.lease, asked.columns)

        def steps() -> Steps[Record | None]:
            yield from hold_attempt(self._attempt)
            rows = yield from execute_composed(query, asked.params)
            return rows[0] if rows else None

        return Operation("renew_row", steps, alone=self._attempt is None, repeatable=True)

    def read(self, row_id: Any) -> Operation[Record | None]:
        """The row as it stands."""

        def steps() -> Steps[Record | None]:
            rows = yield from execute_composed(self._written.standing(), {"fencerow_id": row_id})
            return rows[0] if rows else None

        return Operation("read_row", steps, alone=True, repeatable=True, writes="")

    def find_stuck(self, machine: Machine, count: int) -> Operation[list[Stuck]]:
        """Up to `count` rows for each state that has an age limit, the oldest first."""

        def steps() -> Steps[list[Stuck]]:
            found: list[Stuck] = []
            for state, condition, age in self._limits(machine):
                query = self._written.stuck(machine, state, condition, age)
                for row in (yield from execute_composed(query, {"fencerow_n": count})):
                    age_s = row.pop("fencerow_age_s")
                    found.append(
                        Stuck(
                            row[self._written.declared.id],
                            machine.name or None,
                            state,
                            None if age_s is None else float(age_s),
                            row,
                        )
                    )
            return found

        return Operation("find_stuck", steps, repeatable=True, writes="")

    def reap(self, machine: Machine, count: int) -> Operation[Reaped]:
        """Move what is past its lease, its attempts or its age, up to `count` rows for each rule."""

        def steps() -> Steps[Reaped]:
            moved: dict[str, list[Record]] = {}
            more = False
            for move, source, condition in self._rules(machine):
                query = self._written.batch(machine, move, source, condition)
                rows = yield from execute_composed(query, {"fencerow_n": count})
                yield from self._noting.note(machine, move, source, rows)
                moved.setdefault(move.name, []).extend(rows)
                more = more or len(rows) == count
            return Reaped(moved, more)

        return Operation("reap_rows", steps)

    def sweeps(self, machine: Machine) -> Iterator[tuple[str, Query]]:
        """What looks through the whole table, each with the words that name it."""
        for move in machine.moves.values():
            for source, condition in self._ways(machine, move):
                query = self._written.batch(machine, move, source, condition, self._written.declared.order)
                yield f"taking by {move.name!r}", query
        for state, condition, age in self._limits(machine):
            yield f"finding {state!r} stuck", self._written.stuck(machine, state, condition, age)
        for move, source, condition in self._rules(machine):
            yield f"reaping by {move.name!r}", self._written.batch(machine, move, source, condition)

    # --- inside ----------------------------------------------------------------------------------

    def _move(self, machine: Machine, asked: MoveRequest) -> Steps[Record | None]:
        yield from hold_attempt(self._attempt)
        source = yield from self._source(machine, asked)
        query = self._written.move(
            machine, asked.move, asked.columns, fenced=asked.fenced, left=self._left(machine, asked.move)
        )
        rows = yield from execute_composed(query, {**asked.params, **self._left_params()})
        if not rows:
            return None
        yield from self._noted(machine, asked.move, source, rows)
        return rows[0]

    def _noted(self, machine: Machine, move: Move, source: str | None, rows: list[Record]) -> Steps[None]:
        """Write what is wanted beside a move that happened."""
        lease = self._leased(move)
        if lease is not None and self._handover is not None:
            yield from self._handover.note(machine, lease, rows)
        yield from self._noting.note(machine, move, source, rows)

    def _leased(self, move: Move) -> Lease | None:
        """The lease that a claim takes for an attempt of a job."""
        return move.lease if self._handover is not None else None

    def _left(self, machine: Machine, move: Move) -> str:
        lease = self._leased(move)
        return "" if lease is None or self._handover is None else self._handover.left(machine, lease)

    def _left_params(self) -> Mapping[str, Any]:
        return {} if self._handover is None else self._handover.params

    def _source(self, machine: Machine, asked: MoveRequest) -> Steps[str | None]:
        """From which state it will go, where that is to be noted: locked, since only the new row is returned."""
        sources = dict(machine.pairs(asked.move))
        if len(sources) == 1 or not self._noting.wanted:
            return next(iter(sources))
        rows = yield from execute_composed(self._written.standing(locked=True), {"fencerow_id": asked.id})
        return rows[0][machine.column] if rows else None

    def _ways(self, machine: Machine, move: Move) -> Iterator[tuple[str | None, str]]:
        """The states that rows are taken from, each with its condition.

        First what an older attempt of this job has left, then the stale, which wait the longest.
        """
        if left := self._left(machine, move):
            yield move.target, _both(left, self._written.unspent(move.lease))
        if move.lease is not None:
            yield move.target, _both(self._written.stale(move.lease), self._written.unspent(move.lease))
        for source in sources_of(move):
            yield source, self._written.unspent(move.lease)

    def _limits(self, machine: Machine) -> Iterator[tuple[str | None, str, str]]:
        written = self._written
        for state, lease in machine.leases.items():
            late = f"{written.stale(lease)} OR {written.unstamped(lease)}"
            yield state, late, written.lease_age(lease)
        for overdue in machine.overdue:
            yield overdue.state, written.overdue(overdue), written.overdue_age(overdue)

    def _rules(self, machine: Machine) -> Iterator[tuple[Move, str | None, str]]:
        """What the reaper does, the spent first: else they would be given back once more."""
        written = self._written
        claims = [(move, move.lease) for move in machine.moves.values() if move.lease is not None]
        for claim, lease in claims:
            if lease.when_spent is not None and lease.attempts_max is not None:
                ends = machine.move(lease.when_spent)
                yield ends, claim.target, _both(written.stale(lease), written.spent(lease))
                for source in sources_of(claim):
                    yield ends, source, written.spent(lease)
        for claim, lease in claims:
            if lease.when_stale is not None:
                back = machine.move(lease.when_stale)
                yield back, claim.target, _both(written.stale(lease), written.unspent(lease))
        for overdue in machine.overdue:
            if overdue.move is not None:
                yield machine.move(overdue.move), overdue.state, written.overdue(overdue)


def _both(*conditions: str) -> str:
    return " AND ".join(condition for condition in conditions if condition)
