"""A row for each table of a file, made by hand: what moves, with the values that are easily lost on the way.

They lie in rows.json: instants to the microsecond, whole numbers that a float loses, texts of two letters' width, JSON
with its blanks, tiny numbers, and lists.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

ROWS: Mapping[str, Mapping[str, object]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def plant(connection: sqlite3.Connection, prefix: str = "fencerow_") -> None:
    """Put them all into a file that was migrated."""
    with connection:
        for table, row in ROWS.items():
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {prefix}{table} ({names}) VALUES ({marks})", tuple(row.values()))
