"""The statements of a declaration, composed once for a table: every guard is in the text of its UPDATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencerow.db.queries import Queries, Query
from fencerow.guards.names import literal, quoted
from fencerow.guards.transitions.declaring import Lease, Move, Overdue, listed, sources_of
from fencerow.guards.transitions.facts import Facts
from fencerow.guards.transitions.machine import DeclaredTable, Machine


class Written:
    """What is sent for one declaration, in the dialect of one database and for the columns that it has."""

    def __init__(self, declared: DeclaredTable, facts: Facts, queries: Queries) -> None:
        self.declared = declared
        self.queries = queries
        self._facts = facts
        self._known: dict[tuple[object, ...], Query] = {}
        self._table = declared.table.quoted
        self._id = quoted(declared.id)

    # --- statements ------------------------------------------------------------------------------

    @property
    def hands_over(self) -> bool:
        """Whether the database can note which attempt of a job has leased a row."""
        return self._facts.hands_over

    def move(
        self, machine: Machine, move: Move, columns: tuple[str, ...], *, fenced: bool, left: str = ""
    ) -> Query:
        """One row, by its id. `columns` are those that the caller sets; `fenced`: under a fence though by anyone.

        `left`: a condition under which a claim may take a row whose lease still runs.
        """

        def text() -> str:
            guard = self._guard(machine, move, fenced=fenced, left=left)
            return self._update(self._changes(machine, move, columns), f"{self._id} = :fencerow_id", guard)

        return self._query(("move", machine.name, move.name, columns, fenced, left), text)

    def renewal(self, machine: Machine, claim: Move, lease: Lease, columns: tuple[str, ...]) -> Query:
        """The lease of one row begins anew, under its fence."""

        def text() -> str:
            changes = [self._leased_now(lease), *_given(columns)]
            held = [
                self._is(machine, claim.target),
                f"{quoted(lease.fence)} = :fencerow_fence",
                *self._within(machine),
            ]
            return self._update(changes, f"{self._id} = :fencerow_id", *held)

        return self._query(("renewal", machine.name, claim.name, columns), text)

    def batch(
        self,
        machine: Machine,
        move: Move,
        source: str | None,
        condition: str = "",
        order: Sequence[str] = (),
        columns: tuple[str, ...] = (),
    ) -> Query:
        """Up to :fencerow_n rows in one state that fulfil a condition; who is locked by others is left out."""

        def text() -> str:
            guards = [self._is(machine, source), condition, *self._further(machine, move)]
            wanted = "\n  AND ".join(guard for guard in guards if guard)
            return self._batch(self._changes(machine, move, columns), wanted, order)

        return self._query(("batch", machine.name, move.name, source, condition, tuple(order), columns), text)

    def standing(self, *, locked: bool = False) -> Query:
        """The row as it stands; `locked`, it stays so until the transaction ends."""
        lock = " FOR UPDATE" if locked and self._facts.dialect == "postgres" else ""
        return self._query(
            ("standing", locked),
            lambda: f"SELECT * FROM {self._table} WHERE {self._id} = :fencerow_id{lock}",  # noqa: S608 (checked names)
        )

    def stuck(self, machine: Machine, state: str | None, condition: str, age: str) -> Query:
        """Up to :fencerow_n rows that have been in a state for too long: of unknown age first, then the oldest."""
        return self._query(
            ("stuck", machine.name, state, condition),
            lambda: (
                f"SELECT *, {age} AS fencerow_age_s\nFROM {self._table}\n"
                f"WHERE {self._is(machine, state)}\n  AND ({condition})\n"
                f"ORDER BY {age} IS NULL DESC, fencerow_age_s DESC, {self._id}\nLIMIT :fencerow_n"
            ),
        )

    def history_row(self, columns: Sequence[str]) -> Query:
        """One line about a move, in the table that the user named; the row's id goes from table to table as it is."""
        history = self.declared.history
        assert history is not None
        names = ", ".join(quoted(column) for column in columns)
        moment = self._facts.history_instants().now()
        return self._query(
            ("history",),
            lambda: (
                f"INSERT INTO {history.quoted} ({names})\nSELECT {self._id}, CAST(:fencerow_sub AS text),"
                " CAST(:fencerow_move AS text), CAST(:fencerow_source AS text), CAST(:fencerow_target AS text),"
                f" CAST(:fencerow_fence AS bigint), {moment}\nFROM {self._table}\nWHERE {self._id} = :fencerow_id"
            ),
        )

    # --- conditions ------------------------------------------------------------------------------

    def stale(self, lease: Lease) -> str:
        """The lease has run out. One that nobody stamped never does: nobody knows since when."""
        if lease.until is not None:
            return f"{quoted(lease.until)} < {self._facts.instants(lease.until).now()}"
        assert lease.since is not None
        return f"{quoted(lease.since)} < {self._facts.instants(lease.since).now(-lease.lease_s)}"

    def unstamped(self, lease: Lease) -> str:
        """It is in the leased state, and nobody said since when."""
        return f"{quoted(lease.since or lease.until or '')} IS NULL"

    def lease_age(self, lease: Lease) -> str:
        """For how many seconds the lease has been old: since its stamp, or since its end."""
        column = lease.since or lease.until or ""
        return self._facts.instants(column).age_s(quoted(column))

    def unspent(self, lease: Lease | None) -> str:
        """It may be claimed once more."""
        return self._attempts(lease, "<")

    def spent(self, lease: Lease) -> str:
        """It was claimed as often as it may be."""
        return self._attempts(lease, ">=")

    def overdue(self, overdue: Overdue) -> str:
        """It has been there for too long."""
        first = listed(overdue.since)[0]
        return f"{_first_of(overdue)} < {self._facts.instants(first).now(-overdue.after_s)}"

    def overdue_age(self, overdue: Overdue) -> str:
        """For how many seconds."""
        return self._facts.instants(listed(overdue.since)[0]).age_s(_first_of(overdue))

    # --- inside ----------------------------------------------------------------------------------

    def _guard(self, machine: Machine, move: Move, *, fenced: bool, left: str) -> str:
        """From where it may start: any of its states, under the fence of a leased one; or its own stale target.

        Or its own target while that is left to it.
        """
        leases = machine.leases
        ways = []
        for source in sources_of(move):
            lease = None if move.by_anyone and not fenced else leases.get(source)
            fence = f" AND {quoted(lease.fence)} = :fencerow_fence" if lease else ""
            ways.append(f"{self._is(machine, source)}{fence}")
        if move.lease is not None:
            ways.append(f"{self._is(machine, move.target)} AND {self.stale(move.lease)}")
            if left:
                ways.append(f"{self._is(machine, move.target)} AND {left}")
        further = [guard for guard in (self.unspent(move.lease), *self._further(machine, move)) if guard]
        return "\n  AND ".join([_any_of(ways), *further])

    def _further(self, machine: Machine, move: Move) -> list[str]:
        condition = [f"({move.where}\n)"] if move.where else []
        return [*self._within(machine), *condition]

    def _within(self, machine: Machine) -> list[str]:
        if not machine.within:
            return []
        states = ", ".join(literal(state) for state in machine.within)
        return [f"{quoted(self.declared.main.column)} IN ({states})"]

    def _changes(self, machine: Machine, move: Move, columns: tuple[str, ...]) -> list[str]:
        counted = [*listed(move.counts), *([self.declared.version] if self.declared.version else [])]
        changes = [f"{quoted(machine.column)} = {literal(move.target)}"]
        changes += [
            f"{quoted(self.declared.subs[name].column)} = {literal(state)}"
            for name, state in move.enters.items()
        ]
        if move.lease is not None:
            counted += dict.fromkeys((move.lease.fence, move.lease.attempts or move.lease.fence))
            changes.append(self._leased_now(move.lease))
        changes += [f"{quoted(column)} = coalesce({quoted(column)}, 0) + 1" for column in counted]
        changes += [
            f"{quoted(column)} = {self._facts.instants(column).now()}" for column in listed(move.stamps)
        ]
        changes += [f"{quoted(column)} = NULL" for column in listed(move.clears)]
        return [*changes, *_given(columns)]

    def _leased_now(self, lease: Lease) -> str:
        if lease.until is not None:
            return f"{quoted(lease.until)} = {self._facts.instants(lease.until).now(lease.lease_s)}"
        assert lease.since is not None
        return f"{quoted(lease.since)} = {self._facts.instants(lease.since).now()}"

    def _attempts(self, lease: Lease | None, comparison: str) -> str:
        if lease is None or lease.attempts_max is None:
            return ""
        return f"coalesce({quoted(lease.attempts or lease.fence)}, 0) {comparison} {lease.attempts_max}"

    def _is(self, machine: Machine, state: str | None) -> str:
        return f"{quoted(machine.column)} {'IS NULL' if state is None else '= ' + literal(state)}"

    def _update(self, changes: Sequence[str], *conditions: str) -> str:
        assigned = ",\n    ".join(changes)
        return f"UPDATE {self._table}\nSET {assigned}\nWHERE {_all_of(conditions)}\nRETURNING *"

    def _batch(self, changes: Sequence[str], wanted: str, order: Sequence[str]) -> str:
        """Never IN (SELECT … LIMIT) on PostgreSQL: under a nested loop it takes more rows than the limit."""
        by = ", ".join([*(quoted(column) for column in order), self._id])
        chosen = (
            f"SELECT {self._id} FROM {self._table}\n"  # noqa: S608 (checked names)
            f"  WHERE {wanted}\n  ORDER BY {by}\n  LIMIT :fencerow_n"
        )
        if self._facts.dialect == "postgres":
            among = f"{self._id} = ANY(ARRAY({chosen}\n  FOR UPDATE SKIP LOCKED))"
        else:
            among = f"{self._id} IN ({chosen})"
        return self._update(changes, among, wanted)

    def _query(self, key: tuple[object, ...], text: Callable[[], str]) -> Query:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.composed(f"{key[0]} of {self.declared.table}", text())
        return found

    def composed(self, name: str, text: str) -> Query:
        """A statement made ready to be sent. A test takes a guard out here."""
        return self.queries.composed(name, text)


def _given(columns: tuple[str, ...]) -> list[str]:
    return [f"{quoted(column)} = :fencerow_set_{number}" for number, column in enumerate(columns)]


def _all_of(conditions: Sequence[str]) -> str:
    return "\n  AND ".join(condition for condition in conditions if condition)


def _any_of(ways: Sequence[str]) -> str:
    return ways[0] if len(ways) == 1 else "(" + "\n    OR ".join(f"({way})" for way in ways) + ")"


def _first_of(overdue: Overdue) -> str:
    columns = [quoted(column) for column in listed(overdue.since)]
    return columns[0] if len(columns) == 1 else f"coalesce({', '.join(columns)})"
