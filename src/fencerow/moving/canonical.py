"""A row as both databases say it: as one JSON array, so that its checksum is the same wherever it lies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from fencerow.moving.errors import MoveRefused
from fencerow.moving.model import MODULUS, TableCount
from fencerow.moving.tables import Table

DIGEST_BYTES = 16


def documents(table: Table, rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Each row as JSON.

    Raises:
        MoveRefused: a value cannot be stored in the other database.
    """
    types = [column.type for column in table.columns]
    for row in rows:
        values = [_plain(kind, value) for kind, value in zip(types, row, strict=True)]
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        if "\\u0000" in text and any(isinstance(value, str) and "\x00" in value for value in values):
            raise _unstorable(
                table, row, "a text in it holds a null character, which PostgreSQL stores nowhere"
            )
        yield text


def counted(texts: Iterable[str]) -> TableCount:
    """How many they are, and their checksum, which does not depend on their order."""
    rows = total = 0
    for text in texts:
        rows += 1
        total += int.from_bytes(blake2b(text.encode(), digest_size=DIGEST_BYTES).digest())
    return TableCount(rows, total % MODULUS)


def _plain(kind: str, value: object) -> object:
    if value is None:
        return None
    if kind == "boolean":
        return int(bool(value))
    if kind == "double precision":
        assert isinstance(value, int | float)
        return _finite(float(value))
    if kind == "text[]":
        return json.dumps(json.loads(value) if isinstance(value, str) else value, ensure_ascii=False)
    return value if isinstance(value, int) else str(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise MoveRefused(
            f"a number is {value}", "both databases keep finite numbers only", "correct the row in the file"
        )
    return value


def _unstorable(table: Table, row: Sequence[object], why: str) -> MoveRefused:
    names = [column.name for column in table.columns]
    where = ", ".join(f"{name} {ascii(row[names.index(name)])[:60]}" for name in table.key)
    return MoveRefused(
        f"a row of {table.name} cannot be moved: {where}", why, "delete it, or correct it in the file"
    )
