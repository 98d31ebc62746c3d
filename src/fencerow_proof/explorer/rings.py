"""Who wait for each other in a circle: a server would end one of them, but at whom depends on its clock."""

from __future__ import annotations

from collections.abc import Mapping


def ring(blockers: Mapping[int, set[int]]) -> set[int]:
    """Those of one circle, if there is any; `blockers` has for each who stands in its way."""
    for start in blockers:
        seen = _reached(blockers, start)
        if start in seen:
            return {pid for pid in seen if start in _reached(blockers, pid)}
    return set()


def _reached(blockers: Mapping[int, set[int]], start: int) -> set[int]:
    seen: set[int] = set()
    frontier = {start}
    while frontier:
        frontier = {pid for other in frontier for pid in blockers.get(other, ())} - seen
        seen |= frontier
    return seen
