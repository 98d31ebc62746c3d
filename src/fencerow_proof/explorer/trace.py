"""Which prefixes of orders come to the same when what each step touches is known: those with the same things before."""

from __future__ import annotations

from collections.abc import Hashable

from fencerow_proof.explorer.footprint import Footprint


class Trace:
    """The steps of one order so far, with what each of them touched."""

    def __init__(self) -> None:
        self._done: list[tuple[str, int, Footprint]] = []
        self._counts: dict[str, int] = {}

    def note(self, name: str, footprint: Footprint) -> None:
        """Somebody took a step."""
        self._counts[name] = self._counts.get(name, 0) + 1
        self._done.append((name, self._counts[name], footprint))

    def state(self) -> Hashable:
        """Equal for orders that nobody can tell apart: who came before whom, where that can matter."""
        before = {
            (one[0], one[1], two[0], two[1])
            for position, two in enumerate(self._done)
            for one in self._done[:position]
            if one[0] != two[0] and one[2].meets(two[2])
        }
        return frozenset(before), tuple(sorted(self._counts.items()))
