"""What the explorer tells: what was played, one order after its end, and the order in which something did not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Violation(AssertionError):
    """In some order something did not hold. `order` plays it again; `lines` tell it, statement by statement."""

    def __init__(self, what: str, order: str, lines: Sequence[str], seed: int) -> None:
        self.what = what
        self.order = order
        self.lines = tuple(lines)
        story = "\n".join(f"  {number:3}  {line}" for number, line in enumerate(lines, 1))
        super().__init__(
            f"{what}\n\nin this order:\n{story}\n\n"
            f"to play this order alone: explore(..., order={order!r})  (found with seed={seed})"
        )


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was played. `complete`: every order there is; else a sample of about `total`, drawn by `seed`.

    `reduced`: of orders that come to the same one was played; they are not counted apart.
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
