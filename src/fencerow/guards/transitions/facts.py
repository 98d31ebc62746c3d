"""What the database says of a user's table: which columns there are, and how instants are kept in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fencerow.db.queries import Queries
from fencerow.db.run import Operation, Steps, execute_composed
from fencerow.guards.names import TableName, literal
from fencerow.guards.transitions.declaring import listed
from fencerow.guards.transitions.errors import WrongTable
from fencerow.guards.transitions.handing import may_note
from fencerow.guards.transitions.identity import check_unique
from fencerow.guards.transitions.instants import Instants
from fencerow.guards.transitions.machine import DeclaredTable, Machine
from fencerow.guards.transitions.validating import lease_columns

POSTGRES = """
SELECT attribute.attname AS name, format_type(attribute.atttypid, attribute.atttypmod) AS type
FROM pg_catalog.pg_attribute AS attribute
WHERE attribute.attrelid = to_regclass({quoted}) AND attribute.attnum > 0 AND NOT attribute.attisdropped
"""
SQLITE = "SELECT name, type FROM pragma_table_info({name}{schema})"
HISTORY = ("row_id", "sub", "move", "source", "target", "fence", "moved_at")
"""The columns of a history table, in the order in which they are written; it may have more, with defaults."""
WHOLE = re.compile(r"smallint|integer|bigint|(big|tiny|medium|unsigned)?\s*int\d?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Facts:
    """The columns of a table with their types, in one dialect.

    `hands_over`: the database can note which attempt of a job has leased a row.
    """

    dialect: str
    types: Mapping[str, str]
    history: Mapping[str, str] = field(default_factory=dict[str, str])
    hands_over: bool = False

    def history_instants(self) -> Instants:
        """The same for the instants of the history."""
        return Facts(self.dialect, self.history).instants(HISTORY[-1])

    def instants(self, column: str) -> Instants:
        """How an instant is written into this column.

        Raises:
            WrongTable: it is of a type that keeps none.
        """
        found = Instants.of(self.dialect, self.types[column])
        if found is None:
            raise WrongTable(
                f"column {column!r} is of type {self.types[column] or 'none'!r}",
                f"expected a type for instants: {Instants.expected(self.dialect)}",
                "name another column, or change its type",
            )
        return found


def read_facts(declared: DeclaredTable, queries: Queries) -> Operation[Facts]:
    """Ask the database, and see that the declaration fits the table.

    Raises:
        WrongTable: the table or one of its columns is not there, or of a type that does not fit, or the id is not
            unique by itself.
    """

    def columns(table: TableName) -> Steps[dict[str, str]]:
        query = queries.composed("columns_of_table", _text(table, queries.dialect))
        rows = yield from execute_composed(query, {})
        return {str(row["name"]): str(row["type"]) for row in rows}

    def steps() -> Steps[Facts]:
        types = yield from columns(declared.table)
        history = (yield from columns(declared.history)) if declared.history else {}
        leases = any(machine.leases for machine in declared.machines)
        hands_over = leases and (yield from may_note(queries))
        facts = Facts(queries.dialect, types, history, hands_over)
        _fits(declared, facts)
        yield from check_unique(declared.table, declared.id, queries)
        return facts

    # As a writer: on a lent SQLite connection it may be the first statement of a transaction that then writes.
    return Operation("columns_of_table", steps)


def _text(table: TableName, dialect: str) -> str:
    if dialect == "postgres":
        return POSTGRES.format(quoted=literal(table.quoted))
    schema = f", {literal(table.schema)}" if table.schema else ""
    return SQLITE.format(name=literal(table.name), schema=schema)


def _fits(declared: DeclaredTable, facts: Facts) -> None:
    _has(declared.table, columns_of(declared), facts.types)
    for column in instants_of(declared):
        facts.instants(column)
    for overdue in (each for machine in declared.machines for each in machine.overdue):
        _alike(facts, listed(overdue.since))
    for column in _counted(declared):
        if not WHOLE.fullmatch(facts.types[column]):
            raise WrongTable(
                f"column {column!r} is of type {facts.types[column]!r}",
                "fences, attempts, counters and the version are whole numbers",
                "name another column, or change its type",
            )
    if declared.history is not None:
        _has(declared.history, HISTORY, facts.history)
        facts.history_instants()


def _has(table: TableName, columns: Iterable[str], types: Mapping[str, str]) -> None:
    if not types:
        raise WrongTable(
            f"there is no table {table}",
            "or this role, or this connection's search path, does not see it",
            "create it, or name its schema: `schema.table`",
        )
    missing = [column for column in columns if column not in types]
    if missing:
        raise WrongTable(
            f"table {table} has no column {', '.join(map(repr, missing))}",
            f"it has {', '.join(types)}",
            "add the column, or correct the declaration",
        )


def _alike(facts: Facts, columns: Sequence[str]) -> None:
    """Of several columns the first that is not NULL counts, so they must be comparable."""
    kinds = {column: facts.instants(column).kind for column in columns}
    if len(set(kinds.values())) > 1:
        raise WrongTable(
            f"columns {', '.join(kinds)} keep instants in different ways",
            ", ".join(f"{column}: {kind.value}" for column, kind in kinds.items()),
            "name columns of one type",
        )


def columns_of(declared: DeclaredTable) -> tuple[str, ...]:
    """Every column that the declaration names."""
    found = [declared.id, *declared.order, *instants_of(declared), *_counted(declared)]
    for machine in declared.machines:
        found.append(machine.column)
        for move in machine.moves.values():
            found += [*listed(move.clears), *listed(move.sets)]
            found += lease_columns(move.lease)
            found += listed(move.lease.sets) if move.lease else ()
    return tuple(dict.fromkeys(found))


def instants_of(declared: DeclaredTable) -> tuple[str, ...]:
    """The columns that keep instants."""
    return tuple(dict.fromkeys(column for machine in declared.machines for column in _stamped(machine)))


def _stamped(machine: Machine) -> Iterable[str]:
    for move in machine.moves.values():
        yield from listed(move.stamps)
        if move.lease is not None:
            yield move.lease.since or move.lease.until or ""
    for overdue in machine.overdue:
        yield from listed(overdue.since)


def _counted(declared: DeclaredTable) -> Iterable[str]:
    if declared.version:
        yield declared.version
    for machine in declared.machines:
        for move in machine.moves.values():
            yield from listed(move.counts)
            if move.lease is not None:
                yield from dict.fromkeys((move.lease.fence, move.lease.attempts or move.lease.fence))
