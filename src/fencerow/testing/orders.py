"""Which orders to play: all of them, depth first, or a seeded sample when there are too many."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import prod
from statistics import mean
from typing import Protocol


class Choose(Protocol):
    """Given who may go next, says who does. `state` is equal for prefixes of orders that nobody can tell apart."""

    def __call__(self, options: Sequence[str], state: Hashable = None) -> str: ...


REDUCIBLE = (
    2000  # a tree of so many times the limit may come down to it by leaving out what comes to the same
)
PROBES = 8  # random orders from which the size of the tree is estimated
SEED = 1


@dataclass(frozen=True, slots=True)
class Counted:
    """How many different orders were played. `total` is exact when all were, else an estimate.

    `reduced`: of those that come to the same one was played; `total` then is how many of these there are.
    """

    played: int
    total: int
    reduced: bool = False


class Known(Exception):
    """A prefix of another order has come to the same: what follows was played."""


class OrderImpossible(RuntimeError):
    """A replayed order names an actor that cannot go there: the scenario or the code is not the recorded one."""


def play_all(
    play: Callable[[Choose], list[str]], *, limit: int, seed: int = SEED, reducible: bool = True
) -> Counted:
    """Play every order once; `play` is given the chooser and returns the order that came about.

    The number of orders is not known before: who may go next depends on the locks. It is estimated from a
    few random orders. When it is far beyond `limit`, of the orders that come to the same one is played, and when
    these are too many as well, a seeded sample. `reducible=False`: nobody can tell which come to the same.
    """
    sampling = _Sampling(play, seed)
    sampling.play(min(PROBES, limit))
    if sampling.size <= 1.5 * limit:
        path: list[tuple[int, int]] = []  # at each depth: which of how many was taken
        for number in range(2 * limit):
            sampling.seen.add(tuple(play(_follow(path))))
            if not _advance(path):
                return Counted(number + 1, number + 1)
    elif reducible and sampling.size <= REDUCIBLE * limit:
        played = play_reduced(play, limit=limit)
        if played is not None:
            return Counted(played, played, reduced=True)
        limit //= 2  # some of them were played just now
    sampling.play(limit)
    return sampling.counted


def play_sample(play: Callable[[Choose], list[str]], *, limit: int, seed: int = SEED) -> Counted:
    """Play a seeded sample of the orders."""
    sampling = _Sampling(play, seed)
    sampling.play(limit)
    return sampling.counted


def play_reduced(play: Callable[[Choose], list[str]], *, limit: int) -> int | None:
    """Play one of all orders that come to the same; returns how many there are, or None after `limit` plays.

    Most plays end early, where an order turns out to be known; they count for the limit all the same.
    """
    path: list[tuple[int, int]] = []
    known: set[Hashable] = set()
    whole = 0
    for _ in range(limit):
        try:
            play(_follow(path, known))
            whole += 1
        except Known:
            pass
        if not _advance(path):
            return whole
    return None


def replay(play: Callable[[Choose], list[str]], order: Sequence[str]) -> None:
    """Play one recorded order again."""
    rest = iter(order)

    def choose(options: Sequence[str], state: Hashable = None) -> str:  # noqa: ARG001 (a named order)
        wanted = next(rest, None)
        if wanted is None or wanted not in options:
            raise OrderImpossible(f"{wanted!r} cannot go next; only {', '.join(options)} can")
        return wanted

    play(choose)


class _Sampling:
    """Random orders, the same ones for the same seed."""

    def __init__(self, play: Callable[[Choose], list[str]], seed: int) -> None:
        self._play = play
        self._drawn = random.Random(seed)  # noqa: S311 (an order to play, not a secret)
        self._sizes: list[int] = []
        self.seen: set[tuple[str, ...]] = set()

    @property
    def size(self) -> float:
        """How many orders there are: each weighs as much as the choices it had, an unbiased count of the leaves."""
        return mean(self._sizes)

    @property
    def counted(self) -> Counted:
        return Counted(len(self.seen), max(len(self.seen) + 1, round(self.size)))

    def play(self, limit: int) -> None:
        """Play on until there were so many."""
        while len(self._sizes) < limit:
            branches: list[int] = []

            def draw(options: Sequence[str], state: Hashable = None) -> str:  # noqa: ARG001 (by chance)
                return _draw(self._drawn, options, branches)  # noqa: B023 (called before the next round)

            order = self._play(draw)
            self.seen.add(tuple(order))
            self._sizes.append(prod(branches))


def _draw(drawn: random.Random, options: Sequence[str], branches: list[int]) -> str:
    branches.append(len(options))
    return drawn.choice(list(options))


def _follow(path: list[tuple[int, int]], known: set[Hashable] | None = None) -> Choose:
    """Go the way of the path, and on from its end. A state that is `known` was met on another way, and all played."""
    depth = 0

    def choose(options: Sequence[str], state: Hashable = None) -> str:
        nonlocal depth
        if depth == len(path):
            if known is not None and state is not None:
                if state in known:
                    raise Known
                known.add(state)
            path.append((0, len(options)))
        taken, before = path[depth]
        if before != len(options):
            raise OrderImpossible(
                f"after the same {depth} steps {before} actors could go, now {len(options)} can"
            )
        depth += 1
        return options[taken]

    return choose


def _advance(path: list[tuple[int, int]]) -> bool:
    """Turn the path into the next one; false when the tree is done."""
    while path:
        taken, many = path.pop()
        if taken + 1 < many:
            path.append((taken + 1, many))
            return True
    return False
