"""A series that was told once goes on as 0: one that ends leaves a gap where people look for a queue that is empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K", bound=tuple[str, ...])

KEPT_PER_VALUE = 4  # series of a metric for each name that a label may have: a queue has four states


class Zeros:
    """What one page has told of the database so far, by metric, the latest first. `values_max`: names that a label may
    have."""

    def __init__(self, values_max: int) -> None:
        self._names_max = values_max
        self._kept_max = values_max * KEPT_PER_VALUE
        self._told: dict[str, dict[tuple[str, ...], float]] = {}

    def filled(self, metric: str, values: Mapping[K, float]) -> Mapping[tuple[str, ...], float]:
        """The values, and 0 for every other series of this metric that was told before. Those whose names would not
        fit beside the names of the values are forgotten, the oldest first: else they hid what is there now."""
        kept: dict[tuple[str, ...], float] = dict.fromkeys(values, 0.0)
        names = {key[0] for key in values}
        for key in self._told.get(metric, {}):
            if len(kept) < self._kept_max and (key[0] in names or len(names) < self._names_max):
                names.add(key[0])
                kept.setdefault(key, 0.0)
        self._told[metric] = kept
        return kept | dict[tuple[str, ...], float](values.items())
