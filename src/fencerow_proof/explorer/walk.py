"""A walk through all orders, depth first, that leaves out what comes to the same as an order it has played.

Two ways to know: a state that was met before (`state` of the chooser), and steps that changed places. The second
are *sleep sets* (Godefroid, 1996): when a step `a` was played at some point and `b` is tried there next, `a` sleeps
below `b` as long as only steps follow that touch nothing that `a` touches; where all who could go sleep, the order is
known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from fencerow_proof.explorer.footprint import Footprint

Play = Callable[[Callable[..., str]], list[str]]


class Known(Exception):
    """A prefix of another order has come to the same: what follows was played."""


class OrderImpossible(RuntimeError):
    """A replayed order names an actor that cannot go there: the scenario or the code is not the recorded one."""


@dataclass(slots=True)
class Node:
    """A point at which somebody was chosen. `asleep`: whose step need not be played here, and what it touches."""

    options: tuple[str, ...]
    asleep: dict[str, Footprint]
    taken: str
    tried: set[str] = field(default_factory=set[str])
    touched: Footprint | None = None  # by the step that was taken

    def next(self) -> str | None:
        """Who is to be tried next."""
        return next(
            (name for name in self.options if name not in self.tried and name not in self.asleep), None
        )

    def below(self) -> dict[str, Footprint]:
        """Who goes on sleeping after the step that was taken here."""
        touched = self.touched
        if touched is None:
            return {}
        return {name: mine for name, mine in self.asleep.items() if not mine.meets(touched)}


class Walk:
    """A depth-first walk that can be taken up again. `blind`: nobody told what the steps touch."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._path: list[Node] = []
        self._known: dict[Hashable, frozenset[str]] = {}
        self.plays = 0
        self.whole = 0
        self.reduced = False
        self.blind = True
        self.orders: set[tuple[str, ...]] = set()

    def on(self, limit: int) -> bool:
        """Play on until there were so many plays; true when the walk has come to its end."""
        while self.plays < limit:
            self.plays += 1
            try:
                self.orders.add(tuple(self._play(self._chooser())))
                self.whole += 1
            except Known:
                self.reduced = True
            if not self._advance():
                return True
        return False

    def _chooser(self) -> Callable[..., str]:
        """Go the way of the path, and on from its end."""
        depth = 0

        def choose(options: Sequence[str], state: Hashable = None, touched: Footprint | None = None) -> str:
            nonlocal depth
            path = self._path
            self.blind = self.blind and state is None and touched is None
            if depth and depth == len(path):
                path[-1].touched = touched
            if depth == len(path):
                path.append(self._arrive(tuple(options), state))
            node = path[depth]
            if node.options != tuple(options):
                raise OrderImpossible(
                    f"after the same {depth} steps {len(node.options)} actors could go, now {len(options)} can"
                )
            depth += 1
            return node.taken

        return choose

    def _arrive(self, options: tuple[str, ...], state: Hashable) -> Node:
        """A point where nobody was on this path."""
        asleep = self._path[-1].below() if self._path else {}
        asleep = {name: mine for name, mine in asleep.items() if name in options}
        if state is not None:
            before = self._known.get(state)
            # Known means: all that would be tried here was tried there.
            if before is not None and before <= asleep.keys():
                raise Known
            self._known[state] = frozenset(asleep) if before is None else before & asleep.keys()
        node = Node(options, asleep, "")
        first = node.next()
        if first is None:
            raise Known
        self.reduced = self.reduced or bool(asleep)
        node.taken = first
        return node

    def _advance(self) -> bool:
        """Turn the path into the next one; false when there is none."""
        path = self._path
        while path:
            node = path[-1]
            node.tried.add(node.taken)
            if node.touched is not None:
                node.asleep[node.taken] = node.touched
            following = node.next()
            if following is not None:
                node.taken, node.touched = following, None
                return True
            path.pop()
        return False
