"""Which orders to play: all of them, depth first, or a seeded sample when there are too many."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial, prod

Choose = Callable[[Sequence[str]], str]
"""Given who may go next, says who does."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many orders were played. `total` is exact when all were; else a bound from above, for a sample."""

    played: int
    total: int

    @property
    def complete(self) -> bool:
        return self.played == self.total


class OrderImpossible(RuntimeError):
    """A replayed order names an actor that cannot go there: the scenario or the code is not the recorded one."""


def play_all(play: Callable[[Choose], list[str]], *, limit: int, seed: int = 0) -> Counted:
    """Play every order once; `play` is given the chooser and returns the order that came about.

    The number of orders is not known before: who may go next depends on the locks. If the first order's
    steps could be shuffled in more than `limit` ways, and following the tree does not end within
    `limit`, a seeded sample of `limit` orders is played in addition.
    """
    path: list[tuple[int, int]] = []  # at each depth: which of how many was taken
    first = play(_follow(path))
    seen, bound = {tuple(first)}, shuffles(first)
    if bound <= 4 * limit:  # locks forbid many of the shuffles
        while _advance(path):
            if len(seen) >= limit:
                break
            seen.add(tuple(play(_follow(path))))
        else:
            return Counted(len(seen), len(seen))
    drawn = random.Random(seed)  # noqa: S311 (an order to play, not a secret)
    for _ in range(limit):
        order = play(lambda options: drawn.choice(list(options)))
        bound = max(bound, shuffles(order))
        seen.add(tuple(order))
    return Counted(len(seen), bound)


def replay(play: Callable[[Choose], list[str]], order: Sequence[str]) -> None:
    """Play one recorded order again."""
    rest = iter(order)

    def choose(options: Sequence[str]) -> str:
        wanted = next(rest, None)
        if wanted is None or wanted not in options:
            raise OrderImpossible(f"{wanted!r} cannot go next; only {', '.join(options)} can")
        return wanted

    play(choose)


def shuffles(order: Sequence[str]) -> int:
    """In how many ways these steps can be shuffled while each actor's stay in order."""
    counts = [sum(1 for name in order if name == actor) for actor in set(order)]
    return factorial(len(order)) // prod(factorial(count) for count in counts)


def _follow(path: list[tuple[int, int]]) -> Choose:
    depth = 0

    def choose(options: Sequence[str]) -> str:
        nonlocal depth
        if depth == len(path):
            path.append((0, len(options)))
        taken, known = path[depth]
        if known != len(options):
            raise OrderImpossible(f"after the same {depth} steps {known} actors could go, now {len(options)} can")
        depth += 1
        return options[taken]

    return choose


def _advance(path: list[tuple[int, int]]) -> bool:
    """Turn the path into the next one; false when the tree is done."""
    while path:
        taken, known = path.pop()
        if taken + 1 < known:
            path.append((taken + 1, known))
            return True
    return False
