"""Names of a user's tables and columns: checked once, and quoted wherever they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fencerow.core.errors import FencerowError, InvalidInput

# What both engines take without surprises: PostgreSQL cuts longer names off, a colon would be a parameter.
PLAIN = re.compile(r"[^\W\d]\w*")
BYTES_MAX = 63


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


def table_name(text: str, refused: type[FencerowError] = InvalidInput) -> TableName:
    """Accept `table` or `schema.table`.

    Raises:
        InvalidInput, or the error that is `refused`: it is no plain name.
    """
    parts = str(text).split(".")
    if not 1 <= len(parts) <= 2:
        raise refused(f"{text!r} is no name of a table", "expected `table` or `schema.table`", "correct it")
    for part in parts:
        plain_name(part, "the table", refused)
    return TableName(parts[-1], parts[0] if len(parts) == 2 else None)


def plain_name(text: object, what: str, refused: type[FencerowError] = InvalidInput) -> str:
    """Accept a plain name, in any case: it is quoted, so it must be spelled as the database spells it.

    Raises:
        InvalidInput, or the error that is `refused`: it is no plain name.
    """
    if not isinstance(text, str) or not is_plain(text):
        raise refused(
            f"{text!r} is no usable name for {what}",
            f"expected letters, digits and underscores, at most {BYTES_MAX} bytes, not starting with a digit",
            "spell it as the database does, or rename it there",
        )
    return text


def is_plain(text: str) -> bool:
    """Whether a name may stand in a statement, quoted."""
    return PLAIN.fullmatch(text) is not None and len(text.encode()) <= BYTES_MAX


def quoted(name: str) -> str:
    """A checked name as statements write it: upper and lower case count."""
    assert is_plain(name), name
    return f'"{name}"'


def literal(text: str | None) -> str:
    """A state as statements write it."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"
