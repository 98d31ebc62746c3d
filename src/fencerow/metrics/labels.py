"""How many values a label may have: beyond its bound, what is new is counted as `other`, and that is told.

Names of jobs come from code, but a queue may have any name that a submit gives it. Without a bound a program that
names a queue after each customer would fill the memory of this process and of Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

OTHER: Final = "other"
BOUNDED: Final = frozenset({"queue", "job", "group", "loop", "code", "outcome"})


class Labels:
    """The values that each label has had. Used under the lock of whoever counts."""

    def __init__(self, values_max: int, overflowed: Callable[[str], None]) -> None:
        self._values_max = values_max
        self._overflowed = overflowed  # is told the label's name each time
        self._known: dict[str, set[str]] = {}

    def bounded(self, label: str, value: str) -> str:
        """The value, or `other` where the label has as many as it may have."""
        known = self._known.setdefault(label, set())
        if value in known or label not in BOUNDED:
            return value
        if len(known) >= self._values_max:
            self._overflowed(label)
            return OTHER
        known.add(value)
        return value
