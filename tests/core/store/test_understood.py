"""Each engine understands each statement: its grammar, and every table, column, function and type that it names.

The gate plays some statements of wings on one engine alone (tests/kit/part.py). Here it asks both of all.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

import psycopg

from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import numbered, translated
from fencerow.db.sqlite import SqliteEngine
from tests.kit.jobs import AnyEngine

READS_OR_WRITES = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|WITH|VALUES)\b")
SCRATCHES = re.compile(r"CREATE TEMP TABLE\b")  # what later statements read
OF_A_MIGRATION = re.compile(r"\d{4}")
LEAST = 300  # statements
Asked = tuple[str, str, tuple[str, ...]]  # a query's name, a text of it, and its parameters


def test_each_statement_is_understood(engine: AnyEngine) -> None:
    asked = [
        (query.name, text, query.parameters)
        for query in engine.queries.values()
        for text in query.statements
        if READS_OR_WRITES.match(text) and not query.spells and not OF_A_MIGRATION.search(query.name)
    ]

    wrong = on_postgres(engine, asked) if isinstance(engine, PostgresEngine) else on_sqlite(engine, asked)

    assert wrong == []
    assert len(asked) > LEAST


def test_what_names_nothing_that_is_there_would_be_found(engine: AnyEngine) -> None:
    asked = [("odd", "SELECT no_such_column FROM " + engine.queries.name_of("jobs"), ())]
    assert on_postgres(engine, asked) if isinstance(engine, PostgresEngine) else on_sqlite(engine, asked)


def on_postgres(engine: PostgresEngine, asked: Iterable[Asked]) -> list[str]:
    """Prepared, and planned by nobody: that takes no values."""
    wrong = []
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        for name, text, parameters in asked:
            try:
                connection.execute(f"PREPARE asked AS {numbered(text, parameters)}".encode())
                connection.execute("DEALLOCATE asked")
            except psycopg.Error as error:
                wrong.append(f"{name}: {error}")
    return wrong


def on_sqlite(engine: SqliteEngine, asked: Iterable[Asked]) -> list[str]:
    wrong = []
    with engine.session() as session:
        for query in engine.queries.values():
            for text in filter(SCRATCHES.match, query.statements):
                session.connection.execute(text)
        for name, text, parameters in asked:
            try:
                session.connection.execute(
                    "EXPLAIN " + translated(text, lambda each: f":{each}"), dict.fromkeys(parameters)
                )
            except sqlite3.Error as error:
                wrong.append(f"{name}: {error}")
    return wrong
