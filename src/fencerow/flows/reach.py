"""Whose a flow is: the queues that its jobs and its callbacks come to. For who may see some queues only."""

from __future__ import annotations

from collections.abc import Iterable

from fencerow.db.run import Steps, execute, first_column, operation
from fencerow.flows.looking import FlowPlace, FlowRecord, flow_record, page_of


@operation(repeatable=True, writes="")
def flow_reach(flow_id: str) -> Steps[frozenset[str]]:
    """The queues to which a flow's jobs and callbacks were submitted, and those in which its jobs are or ended."""
    return frozenset(first_column((yield from execute("flow_queues", id=flow_id))))


@operation(alone=True, repeatable=True, writes="")
def list_flows_within(
    queues: Iterable[str],
    *,
    live: bool = False,
    name: str | None = None,
    before: FlowRecord | FlowPlace | None = None,
    limit: int,
) -> Steps[list[FlowRecord]]:
    """Flows whose reach is within these queues, the newest first. `before`: the last one of the page before, or
    its place.

    It costs a look for each list of queues that flows were submitted to and that begins with one of these, and for each
    flow of the page a look at each of its jobs.
    """
    page = page_of(live, name, before, limit)
    rows = yield from execute("list_flows_within", queues=sorted(queues), **page)
    return list(map(flow_record, rows))
