"""Where the jobs of a flow stand in its picture: a column for each level, left to right, and lines between. Pure.

A line that passes a column has a place of its own there, beside the boxes. The order in a column is that of the middle
of those with which each is joined, looked at a few times forth and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

BOX_WIDTH: Final = 164.0
BOX_HEIGHT: Final = 52.0
COLUMN: Final = 208.0
GAP: Final = 20.0  # between boxes of one column
PASSING: Final = 4.0  # the height of a line that passes
SWEEPS: Final = 4
HEAD: Final = 2.0  # an arrow ends so far before its box

Spot = str | tuple[str, int]  # a job; or where the lines from a job pass a column


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """The upper left corner of each box, the path of each line by both its ends, and how large it all is."""

    corners: Mapping[str, tuple[float, float]]
    paths: Mapping[tuple[str, str], str]
    width: float
    height: float


def drawn_graph(levels: Mapping[str, int], edges: Sequence[tuple[str, str]]) -> DrawnGraph:
    """`levels`: of each job how many stand before it. An edge leads from a job to one of a higher level."""
    routes = {edge: _route(levels, *edge) for edge in edges if edge[0] in levels and edge[1] in levels}
    before, behind = _joined(routes)
    columns = _columns(levels, routes)
    for _ in range(SWEEPS):
        _order(columns, before)
        _order(columns[::-1], behind)
    centres = _centres(columns, before, behind)
    top = min((each - _height(spot) / 2 for spot, each in centres.items()), default=0.0)
    centres = {spot: each - top for spot, each in centres.items()}
    return DrawnGraph(
        {name: (level * COLUMN, round(centres[name] - BOX_HEIGHT / 2, 1)) for name, level in levels.items()},
        {edge: _path(levels[edge[0]], [centres[spot] for spot in route]) for edge, route in routes.items()},
        max(levels.values(), default=0) * COLUMN + BOX_WIDTH,
        round(max((each + _height(spot) / 2 for spot, each in centres.items()), default=0.0), 1),
    )


def _route(levels: Mapping[str, int], first: str, last: str) -> list[Spot]:
    """Where a line goes: all lines of one job pass a column together."""
    return [first, *((first, level) for level in range(levels[first] + 1, levels[last])), last]


def _joined(
    routes: Mapping[tuple[str, str], Sequence[Spot]],
) -> tuple[dict[Spot, set[Spot]], dict[Spot, set[Spot]]]:
    """With what each spot is joined, to the left and to the right."""
    before: dict[Spot, set[Spot]] = {}
    behind: dict[Spot, set[Spot]] = {}
    for route in routes.values():
        for left, right in pairwise(route):
            before.setdefault(right, set()).add(left)
            behind.setdefault(left, set()).add(right)
    return before, behind


def _columns(levels: Mapping[str, int], routes: Mapping[tuple[str, str], Sequence[Spot]]) -> list[list[Spot]]:
    columns: list[list[Spot]] = [[] for _ in range(max(levels.values(), default=0) + 1)]
    for name, level in levels.items():
        columns[level].append(name)
    for spot in dict.fromkeys(spot for route in routes.values() for spot in route):
        if isinstance(spot, tuple):
            columns[spot[1]].append(spot)
    return columns


def _order(columns: Sequence[list[Spot]], joined: Mapping[Spot, set[Spot]]) -> None:
    """Sort each column by the middle of those with which its spots are joined; who is joined with none stays."""
    ranks: dict[Spot, int] = {}
    for column in columns:
        kept = {spot: rank for rank, spot in enumerate(column)}
        column.sort(key=lambda spot: _middle([ranks[each] for each in joined.get(spot, ())], kept[spot]))
        ranks |= {spot: rank for rank, spot in enumerate(column)}


def _middle(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise


def _centres(
    columns: Sequence[Sequence[Spot]], before: Mapping[Spot, set[Spot]], behind: Mapping[Spot, set[Spot]]
) -> dict[Spot, float]:
    """How far down each stands: near those with which it is joined, and never upon another."""
    centres: dict[Spot, float] = {}
    for column in columns:
        centres |= _apart(
            column, [_middle([centres[each] for each in before.get(spot, ())], 0.0) for spot in column]
        )
    for joined, order in ((behind, columns[::-1]), (before, columns)):
        for column in order:
            wanted = [
                _middle([centres[each] for each in joined.get(spot, ())], centres[spot]) for spot in column
            ]
            centres |= _apart(column, wanted)
    return centres


def _apart(column: Sequence[Spot], wanted: Sequence[float]) -> dict[Spot, float]:
    """The column in its order, each as near to where it wants to be as the others let it, on the whole."""
    placed: list[float] = []
    for spot, wish in zip(column, wanted, strict=True):
        above = column[len(placed) - 1] if placed else None
        least = placed[-1] + (_height(above) + _height(spot)) / 2 + GAP if above is not None else wish
        placed.append(max(wish, least))
    shift = _middle([wish - each for wish, each in zip(wanted, placed, strict=True)], 0.0)
    return {spot: each + shift for spot, each in zip(column, placed, strict=True)}


def _height(spot: Spot) -> float:
    return PASSING if isinstance(spot, tuple) else BOX_HEIGHT


def _path(level: int, heights: Sequence[float]) -> str:
    """From the right side of a box to the left side of another, level through the columns between."""
    x = level * COLUMN + BOX_WIDTH
    parts = [f"M{x:g} {heights[0]:.1f}"]
    for place, (y, to) in enumerate(pairwise(heights)):
        is_last = place == len(heights) - 2
        end = x + COLUMN - BOX_WIDTH - (HEAD if is_last else 0)
        middle = (x + end) / 2
        parts.append(f"C{middle:g} {y:.1f} {middle:g} {to:.1f} {end:g} {to:.1f}")
        x += COLUMN
        if not is_last:
            parts.append(f"H{x:g}")
    return "".join(parts)
