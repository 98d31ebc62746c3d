"""Names of a user's tables and columns: checked once, and quoted wherever they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fencerow.errors import MovesMisdeclared

# What both engines take without surprises: PostgreSQL cuts longer names off, a colon would be a parameter.
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as the user named it, with its schema if one was given."""

    name: str
    schema: str | None = None

    @property
    def quoted(self) -> str:
        """As statements write it."""
        return ".".join(quoted(part) for part in (self.schema, self.name) if part is not None)

    def beside(self, name: str) -> str:
        """Another name in the same schema, as statements write it."""
        return TableName(name, self.schema).quoted

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


def table_name(text: str) -> TableName:
    """Accept `table` or `schema.table`.

    Raises:
        MovesMisdeclared: it is no plain name.
    """
    parts = text.split(".")
    if not 1 <= len(parts) <= 2:
        raise MovesMisdeclared(
            f"{text!r} is no name of a table", "expected `table` or `schema.table`", "correct it"
        )
    for part in parts:
        column_name(part, "the table")
    return TableName(parts[-1], parts[0] if len(parts) == 2 else None)


def column_name(text: object, what: str) -> str:
    """Accept a plain name, in any case: it is quoted, so it must be spelled as the database spells it.

    Raises:
        MovesMisdeclared: it is no plain name.
    """
    if not isinstance(text, str) or not PLAIN.fullmatch(text):
        raise MovesMisdeclared(
            f"{text!r} is no usable name for {what}",
            "expected letters, digits and underscores, at most 63, not starting with a digit",
            "correct the declaration, or rename it in the database",
        )
    return text


def quoted(name: str) -> str:
    """A checked name as statements write it."""
    assert PLAIN.fullmatch(name), name
    return f'"{name}"'


def literal(text: str | None) -> str:
    """A state as statements write it."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"
