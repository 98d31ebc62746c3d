"""Lengths of time as callers give them: a number of seconds, or a timedelta. Inside they are floats everywhere.

`in_seconds` is the one conversion. Whoever checks a value calls it first, and then sees a number or something wrong:
`is_finite` tells them apart, here and for all numbers that callers give.
"""

from __future__ import annotations

import math
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


def is_finite(value: object) -> bool:
    """Whether it is a number that can be calculated with: no NaN, no infinity, none that no float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def keep_in_seconds(record: object, *names: str) -> None:
    """Turn the timedeltas in these fields of a frozen dataclass into seconds, in its `__post_init__`.

    Such a class tells type checkers alone, by an `__init__` of its own, that it takes `Seconds`: its fields are floats.
    """
    for name in names:
        value = getattr(record, name)
        if isinstance(value, timedelta):
            object.__setattr__(record, name, value.total_seconds())
