"""Numbers that people give: settings, options, limits."""

from __future__ import annotations

from fencerow.db.errors import ConfigError
from fencerow.db.text import shown


def check_number(name: str, value: object, low: int | float, high: int | float) -> None:
    """Make sure that a number is in its range, and whole where the range is.

    Raises:
        ConfigError: it is not.
    """
    whole = isinstance(low, int) and isinstance(high, int)
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        found = shown(value, 40) if isinstance(value, (int, float)) else f"of type {type(value).__name__}"
        raise ConfigError(
            f"{name} is {found}",
            f"{'an integer' if whole else 'a number'} from {low} to {high} is expected",
            f"correct {name}",
        )
