"""Which orders to play: all of them, depth first, or a seeded sample when there are too many."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import prod
from statistics import mean
from typing import Protocol

from fencerow_proof.explorer.footprint import Footprint
from fencerow_proof.explorer.walk import Known, OrderImpossible, Walk

__all__ = [
    "Choose",
    "Counted",
    "Known",
    "OrderImpossible",
    "play_all",
    "play_reduced",
    "play_sample",
    "replay",
]


class Choose(Protocol):
    """Given who may go next, says who does.

    `state` is equal for prefixes of orders that nobody can tell apart; `touched` is what the step before touched.
    Both are None where nobody knows.
    """

    def __call__(
        self, options: Sequence[str], state: Hashable = None, touched: Footprint | None = None
    ) -> str: ...


REDUCIBLE = (
    2000  # a tree of so many times the limit may come down to it by leaving out what comes to the same
)
FEW = 40  # orders that are played before anybody asks how many there are
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


def play_all(play: Callable[[Choose], list[str]], *, limit: int, seed: int = SEED) -> Counted:
    """Play every order once; `play` is given the chooser and returns the order that came about.

    Of orders that come to the same, as far as `play` tells states and footprints, one is played. How many there
    are is not known before: who may go next depends on the locks. When they are not done after a few, their number
    is estimated from random orders; far beyond `limit` it is a seeded sample that is played.
    """
    walk = Walk(play)
    if walk.on(max(1, min(FEW, limit // 4))):
        return Counted(walk.whole, walk.whole, walk.reduced)
    sampling = _Sampling(play, seed)
    sampling.play(min(PROBES, limit))
    within = 1.5 if walk.blind else REDUCIBLE
    if sampling.size <= within * limit and walk.on(2 * limit if sampling.size <= 1.5 * limit else limit):
        return Counted(walk.whole, walk.whole, walk.reduced)
    sampling.play(max(limit // 2, limit - walk.plays))
    return sampling.counted(walk.orders)


def play_sample(play: Callable[[Choose], list[str]], *, limit: int, seed: int = SEED) -> Counted:
    """Play a seeded sample of the orders."""
    sampling = _Sampling(play, seed)
    sampling.play(limit)
    return sampling.counted(set())


def play_reduced(play: Callable[[Choose], list[str]], *, limit: int) -> int | None:
    """Play one of all orders that come to the same; returns how many there are, or None after `limit` plays.

    Some plays end early, where an order turns out to be known; they count for the limit all the same.
    """
    walk = Walk(play)
    return walk.whole if walk.on(limit) else None


def replay(play: Callable[[Choose], list[str]], order: Sequence[str]) -> None:
    """Play one recorded order again."""
    rest = iter(order)

    def choose(options: Sequence[str], *_: Hashable, **__: Hashable) -> str:
        wanted = next(rest, None)
        if wanted is None or wanted not in options:
            raise OrderImpossible(f"{wanted!r} cannot go next; only {', '.join(options)} can")
        return wanted

    play(choose)
    left = list(rest)
    if left:
        raise OrderImpossible(f"nobody is left who could go, but {len(left)} steps were recorded")


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

    def counted(self, others: set[tuple[str, ...]]) -> Counted:
        """The orders drawn, and `others` that were played besides."""
        seen = len(self.seen | others)
        return Counted(seen, max(seen + 1, round(self.size)))

    def play(self, limit: int) -> None:
        """Play on until there were so many."""
        while len(self._sizes) < limit:
            branches: list[int] = []

            def draw(options: Sequence[str], *_: Hashable, **__: Hashable) -> str:
                return _draw(self._drawn, options, branches)  # noqa: B023 (called before the next round)

            order = self._play(draw)
            self.seen.add(tuple(order))
            self._sizes.append(prod(branches))


def _draw(drawn: random.Random, options: Sequence[str], branches: list[int]) -> str:
    branches.append(len(options))
    return drawn.choice(list(options))
