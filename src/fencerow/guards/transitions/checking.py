"""Every statement of a declaration, explained by the database and not run: what it would refuse is found early."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg

from fencerow.core.errors import NotPermitted, SchemaMissing, SchemaTooOld
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Steps, execute_composed
from fencerow.guards.transitions.composing import Written
from fencerow.guards.transitions.declaring import listed
from fencerow.guards.transitions.errors import WrongTable
from fencerow.guards.transitions.facts import HISTORY
from fencerow.guards.transitions.operations import Operations

REFUSALS = (psycopg.Error, sqlite3.Error, NotPermitted, SchemaMissing, SchemaTooOld)


def explained(written: Written, operations: Operations) -> Iterator[tuple[str, Operation[None]]]:
    """An operation for each statement, with the words that name it in an error."""
    for told, query in _statements(written, operations):
        yield told, _explaining(query)


@contextmanager
def as_wrong_table(table: str, told: str) -> Iterator[None]:
    """What the database says against a statement, as an error about the declaration."""
    try:
        yield
    except REFUSALS as error:
        raise _wrong(table, told, error) from error


def _wrong(table: str, told: str, error: Exception) -> WrongTable:
    why = getattr(error, "why", "") or (str(error).strip().splitlines() or [type(error).__name__])[0]
    return WrongTable(
        f"the database would refuse {told} of {table}",
        why,
        "correct the declaration, the table or the grants",
    )


def _statements(written: Written, operations: Operations) -> Iterator[tuple[str, Query]]:
    for machine in written.declared.machines:
        for move in machine.moves.values():
            columns = tuple(sorted(listed(move.sets)))
            yield f"move {move.name!r}", written.move(machine, move, columns, fenced=False)
            if move.lease is not None:
                renewable = tuple(sorted(listed(move.lease.sets)))
                yield f"the renewal of {move.name!r}", written.renewal(machine, move, move.lease, renewable)
        yield from operations.sweeps(machine)
    yield "reading", written.standing(locked=True)
    if written.declared.history is not None:
        yield "the history", written.history_row(HISTORY)


def _explaining(query: Query) -> Operation[None]:
    (text,) = query.statements
    asked = replace(query, name="explain", statements=(f"EXPLAIN {text}",))

    def steps() -> Steps[None]:
        yield from execute_composed(asked, dict.fromkeys(query.parameters))

    return Operation("explain", steps, writes="")
