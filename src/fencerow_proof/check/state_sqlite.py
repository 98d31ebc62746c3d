"""Reads the end state of a run on SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from fencerow_proof.check.state import (
    KEYS,
    MUTEXES,
    OURS,
    PUBLISHED,
    RESULT,
    SUBMITTED,
    WINDOWS,
    Shape,
    State,
    result_rows,
)

OURS_ROWS = {
    SUBMITTED: "SELECT name, queue, args, key FROM {prefix}all_jobs WHERE id NOT IN ({ids}) ORDER BY id",
    PUBLISHED: "SELECT topic, key, data FROM {prefix}events ORDER BY id",
    KEYS: "SELECT scope, key, done_at IS NOT NULL AS done, result FROM {prefix}once_keys",
    WINDOWS: "SELECT name, key, value FROM {prefix}dedupe_windows",
    MUTEXES: "SELECT key FROM {prefix}mutexes WHERE holder IS NOT NULL",
}
RESULTS = "SELECT id, result FROM {prefix}all_jobs WHERE id IN ({ids}) AND state = 'succeeded'"
READ_S = 2.0


class SqliteReader:
    """Every table of every file in the folder but ours."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    def state(self, checked: Sequence[str]) -> State:
        tables: dict[str, list[dict[str, Any]]] = {}
        shapes: dict[str, Shape] = {}
        for file, connection in self._files():
            for name in _names(connection):
                if name.startswith(self._prefix):
                    continue
                shown = name if name not in tables else f"{file.stem.rpartition('-')[0]}.{name}"
                shapes[shown] = _shape(connection, name)
                tables[shown] = _rows(connection, f"SELECT * FROM {_quoted(name)}")  # noqa: S608
            if f"{self._prefix}jobs" in _names(connection):
                known = {"prefix": self._prefix, "ids": ", ".join(f"'{each}'" for each in checked)}
                for name, text in OURS_ROWS.items():
                    shapes[name] = OURS[name]
                    tables[name] = [
                        _decoded(OURS[name], row) for row in _rows(connection, text.format(**known))
                    ]
                results = _rows(connection, RESULTS.format(**known))
                tables[RESULT], shapes[RESULT] = result_rows((row["id"], row["result"]) for row in results)
        return State(tables, shapes)

    def rows(self, table: str) -> list[str]:
        found: list[str] = []
        for _, connection in self._files():
            for name in _names(connection):
                if name.lower() == table:
                    found += map(repr, connection.execute(f"SELECT * FROM {_quoted(name)}").fetchall())  # noqa: S608
        return sorted(found)

    def _files(self) -> Iterator[tuple[Path, sqlite3.Connection]]:
        for file in sorted(self._folder.glob("*.db")):
            with closing(sqlite3.connect(file, timeout=READ_S, isolation_level=None)) as connection:
                yield file, connection


def _names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    return [str(row[0]) for row in rows]


def _shape(connection: sqlite3.Connection, table: str) -> Shape:
    columns = connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
    keys = [row for row in columns if row[5]]
    made = {str(row[1]) for row in keys if len(keys) == 1 and str(row[2]).upper() == "INTEGER"}
    refers = {
        str(row[3]): (str(row[2]), str(row[4] or "id"))
        for row in connection.execute(f"PRAGMA foreign_key_list({_quoted(table)})")
    }
    return Shape(tuple(str(row[1]) for row in columns), frozenset(made), refers)


def _rows(connection: sqlite3.Connection, text: str) -> list[dict[str, Any]]:
    cursor = connection.execute(text)
    names = [str(column[0]) for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _decoded(shape: Shape, row: dict[str, Any]) -> dict[str, Any]:
    """Documents are text here."""
    return {
        name: json.loads(value) if name in shape.free and isinstance(value, str) else value
        for name, value in row.items()
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
