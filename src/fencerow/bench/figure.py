"""One measured number beside the raw limit that was measured with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured: ours, and what the same database gave to bare statements in the same run.

    `beside` says what the second number is when it is no bare statement: a growth is measured beside the
    same claim on a small table.
    """

    question: str
    what: str
    ours: float
    unit: str
    raw: float | None = None
    beside: str = "raw"
    more: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Ours divided by what stands beside it."""
        return self.ours / self.raw if self.raw else None


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)
