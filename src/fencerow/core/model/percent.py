"""How far an attempt says that it is, checked where it is said."""

from __future__ import annotations

from fencerow.core.errors import InvalidInput
from fencerow.db.text import shown


def percent_of(value: object) -> float:
    """A number from 0 to 100.

    Raises:
        InvalidInput: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise InvalidInput(f"job.progress got {shown(value)}", "a number from 0 to 100 is expected", "")
    return float(value)
