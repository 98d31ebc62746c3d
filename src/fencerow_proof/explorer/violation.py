"""What an exploration ends with when something does not hold: the order in which it went wrong."""

from __future__ import annotations

from collections.abc import Sequence


class Violation(AssertionError):
    """Something did not hold in one of the orders. `order` plays it again; `lines` tell it, statement by statement."""

    def __init__(self, what: str, order: str, lines: Sequence[str], again: str) -> None:
        self.what = what
        self.order = order
        self.lines = tuple(lines)
        story = "\n".join(f"  {number:3}  {line}" for number, line in enumerate(lines, 1))
        super().__init__(f"{what}\n\nin this order:\n{story}\n\nto play this order alone: {again}")
