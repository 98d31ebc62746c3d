"""Writes a PostgreSQL text so that a parameter's type never depends on where it stands.

Drivers that ask the server for the types of parameters (asyncpg) would otherwise take a text that stands
in CAST(:jobs AS json) through the user's json codec, which encodes it twice, and want a UUID or an
exact integer where we pass plain values. Each parameter is first cast to the type of its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from fencerow.core.db.queries import translated
from fencerow.core.db.run import Param


def cast_of(value: Param) -> str:
    """The PostgreSQL type that takes this value as it is."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "bigint"
        case float():
            return "double precision"
        case bytes():
            return "bytea"
        case list():
            return "bigint[]" if value and all(isinstance(item, int) for item in value) else "text[]"
        case _:
            return "text"


def typed(text: str, parameters: tuple[str, ...], params: Mapping[str, Param]) -> str:
    """`text` with every `:name` written as a cast to the type of its value."""
    return _typed(text, tuple((name, cast_of(params[name])) for name in parameters))


@lru_cache(maxsize=1024)
def _typed(text: str, types: tuple[tuple[str, str], ...]) -> str:
    known = dict(types)
    return translated(text, lambda name: f"CAST(:{name} AS {known[name]})")
