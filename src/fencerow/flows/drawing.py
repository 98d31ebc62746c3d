"""The graph of a flow in text: a row for each job, indented by how many stand before it, with those it waits for."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.flows.looking import FlowJobRecord

INDENT_MAX = 12
NAMES_MAX = 4
MARKS = {"waiting": ".", "queued": "o", "running": ">", "succeeded": "+", "failed": "x", "cancelled": "-"}


def drawn(jobs: Sequence[FlowJobRecord]) -> list[tuple[str, str, str, str]]:
    """Name with its indent, state, for whom it waits, id of the job; each behind those it waits for."""
    return [
        (
            f"{'  ' * min(each.level, INDENT_MAX)}{MARKS[each.state]} {each.name}",
            each.state.value,
            waits_for(each),
            each.id,
        )
        for each in jobs
    ]


def waits_for(job: FlowJobRecord) -> str:
    """`needs a, b; after c`."""
    parts = (("needs", job.needs), ("after", job.after))
    return "; ".join(f"{policy} {_few(names)}" for policy, names in parts if names)


def _few(names: Sequence[str]) -> str:
    few = ", ".join(names[:NAMES_MAX])
    return few if len(names) <= NAMES_MAX else f"{few} and {len(names) - NAMES_MAX} more"
