"""The picture of a flow with too many jobs to draw each: a box for each column and name, with how they stand. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.core.model.state import FINAL, State
from fencerow.web.dashboard.counting.flows import FlowGroups
from fencerow.web.dashboard.graph import BOX_HEIGHT, BOX_WIDTH, COLUMN, GAP

NAMES_MAX = 6
INNER = BOX_WIDTH - 20
ORDER = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.RUNNING, State.QUEUED, State.WAITING)


@dataclass(frozen=True, slots=True)
class GroupPart:
    """How many jobs of a box are in one state, and their part of its bar."""

    state: str
    jobs: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class GroupBox:
    """Jobs of one name in one column. `state` is that which needs a person first."""

    name: str
    column: int
    jobs: int
    ended: int
    state: str
    x: float
    y: float
    parts: Sequence[GroupPart]


@dataclass(frozen=True, slots=True)
class GroupedFlow:
    """All boxes, how large it is, how many columns; `hidden`: boxes that are not shown."""

    boxes: Sequence[GroupBox]
    columns: int
    width: float
    height: float
    hidden: int


def grouped_flow(found: FlowGroups) -> GroupedFlow:
    """The boxes of each column, those with the most jobs above."""
    counts: dict[int, dict[str, dict[State, int]]] = {}
    for each in found.groups:
        states = counts.setdefault(each.column, {}).setdefault(each.name, {})
        states[each.state] = states.get(each.state, 0) + each.jobs
    boxes: list[GroupBox] = []
    hidden = rows = 0
    for column, names in sorted(counts.items()):
        largest = sorted(names.items(), key=lambda each: (-sum(each[1].values()), each[0]))
        hidden += max(0, len(largest) - NAMES_MAX)
        rows = max(rows, min(len(largest), NAMES_MAX))
        boxes += [_box(column, row, *each) for row, each in enumerate(largest[:NAMES_MAX])]
    columns = max(counts, default=0) + 1
    return GroupedFlow(
        boxes, columns, (columns - 1) * COLUMN + BOX_WIDTH, rows * (BOX_HEIGHT + GAP) - GAP, hidden
    )


def _box(column: int, row: int, name: str, states: dict[State, int]) -> GroupBox:
    jobs = sum(states.values())
    parts: list[GroupPart] = []
    x = 0.0
    for state in ORDER:
        if count := states.get(state, 0):
            width = count / jobs * INNER
            parts.append(GroupPart(state.value, count, round(x, 1), round(width, 1)))
            x += width
    return GroupBox(
        name,
        column,
        jobs,
        sum(count for state, count in states.items() if state in FINAL),
        _first(states).value,
        column * COLUMN,
        row * (BOX_HEIGHT + GAP),
        parts,
    )


def _first(states: dict[State, int]) -> State:
    """What a person should see of it first: a failure, then whether it goes on."""
    order = (State.FAILED, State.RUNNING, State.QUEUED, State.WAITING, State.CANCELLED, State.SUCCEEDED)
    return next(state for state in order if states.get(state))
