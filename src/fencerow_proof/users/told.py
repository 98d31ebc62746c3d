"""What the explorer tells: what was played, and one order after its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Exploration:
    """What `explore` played. `complete`: every order; else a sample of the about `total` orders, drawn by `seed`.

    `reduced`: of several orders with the same effect, only one was played and counted.
    """

    engine: str
    orders: int
    total: int
    complete: bool
    seconds: float
    seed: int
    reduced: bool = False

    def __str__(self) -> str:
        if self.complete:
            apart = " that are told apart" if self.reduced else ""
            return f"{self.engine}: all {self.orders} orders{apart} in {self.seconds:.1f} s"
        return (
            f"{self.engine}: {self.orders} of about {self.total:,} orders in {self.seconds:.1f} s: "
            f"a sample, seed {self.seed}"
        )


@dataclass(frozen=True, slots=True)
class Played:
    """One order after its end, for the `check` of `explore`."""

    order: str
    results: Mapping[str, Any]
    errors: Mapping[str, Exception]
    rows: Callable[[str], list[tuple[Any, ...]]]
    """Ask the database: `played.rows("SELECT ...")`."""
