"""Lengths of time as callers give them: a number of seconds, or a timedelta. Inside they are floats everywhere.

`in_seconds` is the one conversion. Whoever checks a value calls it first, and then sees a number or something wrong.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias, overload

Seconds: TypeAlias = float | timedelta


@overload
def in_seconds(value: Seconds) -> float: ...
@overload
def in_seconds(value: Seconds | None) -> float | None: ...
@overload
def in_seconds(value: object) -> object: ...
def in_seconds(value: object) -> object:
    """A timedelta as seconds; anything else as it is, for whoever checks it."""
    return value.total_seconds() if isinstance(value, timedelta) else value


def keep_in_seconds(record: object, *names: str) -> None:
    """Turn the timedeltas in these fields of a frozen dataclass into seconds, in its `__post_init__`.

    Such a class tells type checkers alone, by an `__init__` of its own, that it takes `Seconds`: its fields are floats.
    """
    for name in names:
        value = getattr(record, name)
        if isinstance(value, timedelta):
            object.__setattr__(record, name, value.total_seconds())
