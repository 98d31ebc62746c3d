"""What a user's migration takes from the declaration: the CHECK constraint, and a table for the history."""

from __future__ import annotations

from hashlib import sha256

from fencerow.guards.names import TableName, literal, quoted
from fencerow.guards.transitions.machine import DeclaredTable, Machine

NAME_LENGTH_MAX = 63
HISTORY = """\
CREATE TABLE {name} (
    "row_id" {id} NOT NULL,
    "sub" text,
    "move" text NOT NULL,
    "source" text,
    "target" text,
    "fence" bigint,
    "moved_at" {instant} NOT NULL
);
CREATE INDEX {index} ON {on} ("row_id", "moved_at");
"""


def constraint_sql(declared: DeclaredTable, dialect: str) -> str:
    """The CHECK constraints on the state columns.

    PostgreSQL: statements that add them, the second of each without locking out readers and writers. SQLite adds
    none to a table that is there: clauses for its CREATE TABLE.
    """
    if dialect == "sqlite":
        return ",\n".join(
            f"CONSTRAINT {_constraint(declared, each)} CHECK ({_allowed(each)})" for each in declared.machines
        )
    table = declared.table.quoted
    return "\n".join(
        f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name};\n"
        f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({_allowed(each)}) NOT VALID;\n"
        f"ALTER TABLE {table} VALIDATE CONSTRAINT {name};"
        for each in declared.machines
        for name in [_constraint(declared, each)]
    )


def history_sql(history: TableName, dialect: str, id_type: str) -> str:
    """The table in which moves leave their rows. Its `row_id` should be of the type of the table's id."""
    postgres = dialect == "postgres"
    index = f"{history.name}_row"
    return HISTORY.format(
        name=history.quoted,
        id=id_type,
        instant="timestamptz" if postgres else "integer",
        # PostgreSQL puts an index beside its table, SQLite names the schema at the index.
        index=quoted(short(index)) if postgres else TableName(short(index), history.schema).quoted,
        on=history.quoted if postgres else quoted(history.name),
    )


def short(name: str) -> str:
    """A name that no database cuts off; what is cut here stays distinct."""
    if len(name) <= NAME_LENGTH_MAX:
        return name
    return f"{name[: NAME_LENGTH_MAX - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def _constraint(declared: DeclaredTable, machine: Machine) -> str:
    return quoted(short(f"{declared.table.name}_{machine.column}_check"))


def _allowed(machine: Machine) -> str:
    states = ", ".join(literal(state) for state in machine.states if state is not None)
    return f"{quoted(machine.column)} IN ({states})"
