"""Whose a flow is: the queues that its jobs and its callbacks come to. For who may see some queues only."""

from __future__ import annotations

import msgspec

from fencerow.core.db.run import Steps, execute, operation


class FlowReach(msgspec.Struct, frozen=True):
    """The queues of a flow, and the names of those jobs that are gone, so that nobody knows theirs."""

    queues: frozenset[str]
    gone: frozenset[str]


class _TemplateRead(msgspec.Struct, frozen=True):
    queue: str


@operation(repeatable=True, writes="")
def flow_reach(flow_id: str) -> Steps[FlowReach]:
    """The queues of a flow's jobs, and of the callbacks that it may make."""
    members = yield from execute("flow_queues", id=flow_id)
    callbacks = yield from execute("read_flow_callbacks", id=flow_id)
    made = [msgspec.json.decode(str(row[2]), type=_TemplateRead).queue for row in callbacks]
    return FlowReach(
        frozenset([*(str(row[0]) for row in members if row[0] is not None), *made]),
        frozenset(str(row[1]) for row in members if row[1] is not None),
    )
