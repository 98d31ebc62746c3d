"""How the tables of ours are written in each dialect, where queries say `fencerow.jobs`."""

from __future__ import annotations

from collections.abc import Callable

from fencerow.core.db.queries import identifier


def postgres_names(schema: str) -> Callable[[str], str]:
    """How `fencerow.x` is written in PostgreSQL: a quoted schema, and `fencerow.own_schema` for the schema itself."""
    identifier(schema, "schema name")
    return lambda name: f'"{schema}"' if name == "own_schema" else f'"{schema}".{name}'


def sqlite_names(prefix: str) -> Callable[[str], str]:
    """How `fencerow.x` is written in a SQLite file: a prefix, and the attached file for the workers."""
    identifier(prefix, "table prefix")

    def rename(name: str) -> str:
        return f"{prefix}file.{prefix}workers" if name == "workers" else f"{prefix}{name}"

    return rename
