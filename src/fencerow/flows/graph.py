"""The graph of a flow, checked: who waits for whom, in an order in which everybody stands behind those it waits for.

Nothing here knows jobs or a database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from fencerow.db.text import amount, shown
from fencerow.flows.errors import FlowCycle, FlowTooLarge, InvalidFlow, UnknownFlowJob

JOBS_MAX: Final = 20_000
EDGES_MAX: Final = 100_000
DEPTH_MAX: Final = 1_000
NAMES_SHOWN: Final = 8


class Policy(StrEnum):
    """What the end of one job means to another that waits for it.

    `needs`: it must succeed; else the other one is cancelled. `after`: it may end in any way.
    """

    NEEDS = "needs"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class FlowOrder:
    """The names of a flow's jobs, each behind those it waits for; and how many stand before each in a chain."""

    names: tuple[str, ...]
    levels: Mapping[str, int]


def ordered(edges: Mapping[str, Mapping[str, Policy]]) -> FlowOrder:
    """Check the graph: of each job by whose name, for whom it waits.

    Raises:
        InvalidFlow: it has no job. FlowTooLarge: too many jobs or edges, or too long a chain.
        UnknownFlowJob: somebody waits for a name that is none. FlowCycle: some wait for one another.
    """
    _refuse_size(edges)
    _refuse_unknown(edges)
    waits_for = {name: len(before) for name, before in edges.items()}
    followers: dict[str, list[str]] = {name: [] for name in edges}
    for name, before in edges.items():
        for each in before:
            followers[each].append(name)
    levels = dict.fromkeys((name for name, count in waits_for.items() if count == 0), 0)
    names = list(levels)
    for name in names:  # it grows while it is walked
        for each in followers[name]:
            levels[each] = max(levels.get(each, 0), levels[name] + 1)
            waits_for[each] -= 1
            if waits_for[each] == 0:
                names.append(each)
    if len(names) < len(edges):
        raise _cycle(edges, set(edges).difference(names))
    depth = max(levels.values()) + 1
    if depth > DEPTH_MAX:
        raise FlowTooLarge(
            f"a chain of the flow has {depth} jobs, one behind the other",
            f"at most {DEPTH_MAX} may stand so",
            "let the last job of one flow submit the next flow",
        )
    return FlowOrder(tuple(names), levels)


def _refuse_size(edges: Mapping[str, Mapping[str, Policy]]) -> None:
    count = sum(map(len, edges.values()))
    if not edges:
        raise InvalidFlow(
            "the flow has no job", "a flow has at least one", "add one: flow.add(name, job.call(...))"
        )
    if len(edges) > JOBS_MAX or count > EDGES_MAX:
        raise FlowTooLarge(
            f"the flow has {amount(len(edges), 'job')}, which wait for others {amount(count, 'time')}",
            f"a flow may have {JOBS_MAX} jobs and {EDGES_MAX} edges",
            "let jobs of one flow submit flows of their own, or put a job between many and many",
        )


def _refuse_unknown(edges: Mapping[str, Mapping[str, Policy]]) -> None:
    for name, before in edges.items():
        for each in before:
            if each not in edges:
                close = ", ".join(map(repr, get_close_matches(each, edges, n=3)))
                raise UnknownFlowJob(
                    f"job {name!r} of the flow waits for {each!r}, which the flow does not have",
                    f"the closest names are {close}" if close else f"it has {_names(list(edges))}",
                    "add that job too, or correct the name",
                )


def _cycle(edges: Mapping[str, Mapping[str, Policy]], stuck: set[str]) -> FlowCycle:
    """Walks back from one that is stuck, always to one that is stuck too, until it comes to one it has seen."""
    seen: list[str] = []
    name = min(stuck)
    while name not in seen:
        seen.append(name)
        name = next(each for each in edges[name] if each in stuck)
    ring = [*reversed(seen[seen.index(name) :])]
    return FlowCycle(
        f"jobs of the flow wait for one another: {_names([*ring, ring[0]], ' -> ')}",
        "none of them could ever start",
        "take one of these edges out",
    )


def _names(names: Sequence[str], between: str = ", ") -> str:
    few = between.join(shown(name) for name in names[:NAMES_SHOWN])
    return few if len(names) <= NAMES_SHOWN else f"{few} and {len(names) - NAMES_SHOWN} more"
