"""A series that was told once goes on as 0: one that ends leaves a gap where people look for a queue that is empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K", bound=tuple[str, ...])

KEPT_PER_VALUE = 4  # series of a metric for each name that a label may have: a queue has four states


class Zeros:
    """What one page has told of the database so far, by metric."""

    def __init__(self, values_max: int) -> None:
        self._kept_max = values_max * KEPT_PER_VALUE
        self._told: dict[str, dict[tuple[str, ...], float]] = {}

    def filled(self, metric: str, values: Mapping[K, float]) -> Mapping[tuple[str, ...], float]:
        """The values, and 0 for every other series of this metric that was told before; so many are remembered."""
        told = self._told.setdefault(metric, {})
        for key in values:
            if len(told) < self._kept_max:
                told[key] = 0.0
        return told | dict[tuple[str, ...], float](values.items())
