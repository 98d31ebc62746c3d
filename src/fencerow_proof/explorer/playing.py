"""One order, played to its end: the loop under every exploration, whatever it is that is stepped."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from fencerow_proof.explorer.footprint import Footprint
from fencerow_proof.explorer.orders import Choose


class Turns(Protocol):
    """What is explored, at one point of one order. A step ends when nothing moves any more."""

    @property
    def is_over(self) -> bool:
        """Whether everybody has come to the end."""
        ...

    @property
    def state(self) -> Hashable:
        """Equal for prefixes of orders that nobody can tell apart; None where nobody knows."""
        ...

    @property
    def touched(self) -> Footprint | None:
        """What the step before touched, with what it set free; None where nobody knows."""
        ...

    def options(self) -> Sequence[str]:
        """Who may go next; nobody when all wait for each other."""
        ...

    def forced(self, options: Sequence[str]) -> str | None:
        """Who goes without a choice: its step meets nobody's, so it does not matter when it is taken."""
        ...

    def step(self, name: str) -> None:
        """Let one take a step, and look what that came to."""

    def unblock(self) -> None:
        """Nobody may go: let one end its wait, as the database would in the end; or raise."""


def play(turns: Turns, choose: Choose, order: list[str]) -> None:
    """Play one order. `order` is told who goes before the step is taken: it has them all when that raises."""
    while not turns.is_over:
        options = turns.options()
        if not options:
            turns.unblock()
            continue
        name = turns.forced(options) or choose(options, turns.state, turns.touched)
        order.append(name)
        turns.step(name)
