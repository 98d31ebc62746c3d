"""Which orders to play: all of them, depth first, or a seeded sample when there are too many."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from statistics import mean

Choose = Callable[[Sequence[str]], str]
"""Given who may go next, says who does."""

PROBES = 8  # random orders from which the size of the tree is estimated
SEED = 1


@dataclass(frozen=True, slots=True)
class Counted:
    """How many different orders were played. `total` is exact when all were, else an estimate."""

    played: int
    total: int


class OrderImpossible(RuntimeError):
    """A replayed order names an actor that cannot go there: the scenario or the code is not the recorded one."""


def play_all(play: Callable[[Choose], list[str]], *, limit: int, seed: int = SEED) -> Counted:
    """Play every order once; `play` is given the chooser and returns the order that came about.

    The number of orders is not known before: who may go next depends on the locks. It is estimated from a
    few random orders, and when it is far beyond `limit`, a seeded sample of `limit` orders is played instead.
    """
    drawn = random.Random(seed)  # noqa: S311 (an order to play, not a secret)
    seen: set[tuple[str, ...]] = set()
    sizes: list[int] = []

    def sample() -> None:
        branches: list[int] = []
        order = play(lambda options: _draw(drawn, options, branches))
        seen.add(tuple(order))
        sizes.append(prod(branches))

    while len(sizes) < min(PROBES, limit):
        sample()
    if mean(sizes) <= 1.5 * limit:
        path: list[tuple[int, int]] = []  # at each depth: which of how many was taken
        for number in range(2 * limit):
            seen.add(tuple(play(_follow(path))))
            if not _advance(path):
                return Counted(number + 1, number + 1)
    while len(sizes) < limit:
        sample()
    # Each random order weighs as much as the choices it had: their mean is an unbiased count of the leaves.
    return Counted(len(seen), max(len(seen) + 1, round(mean(sizes))))


def replay(play: Callable[[Choose], list[str]], order: Sequence[str]) -> None:
    """Play one recorded order again."""
    rest = iter(order)

    def choose(options: Sequence[str]) -> str:
        wanted = next(rest, None)
        if wanted is None or wanted not in options:
            raise OrderImpossible(f"{wanted!r} cannot go next; only {', '.join(options)} can")
        return wanted

    play(choose)


def _draw(drawn: random.Random, options: Sequence[str], branches: list[int]) -> str:
    branches.append(len(options))
    return drawn.choice(list(options))


def _follow(path: list[tuple[int, int]]) -> Choose:
    depth = 0

    def choose(options: Sequence[str]) -> str:
        nonlocal depth
        if depth == len(path):
            path.append((0, len(options)))
        taken, known = path[depth]
        if known != len(options):
            raise OrderImpossible(
                f"after the same {depth} steps {known} actors could go, now {len(options)} can"
            )
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
