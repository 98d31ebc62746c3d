"""Flows that ended long ago are removed, with what was kept of their jobs; the jobs have a retention of their own."""

from __future__ import annotations

from fencerow.db.run import Steps, execute, first_column, operation

FLOWS_MAX = 100  # that one transaction removes


@operation(repeatable=True)
def purge(*, age_s: float, limit: int) -> Steps[int]:
    """Remove up to `limit` flows that ended so long ago; returns how many. Those that somebody works on are left."""
    flows = first_column((yield from execute("lock_old_flows", age_s=age_s, limit=limit)))
    if flows:
        yield from execute("forget_flow_callbacks", flows=flows)
        yield from execute("forget_flow_waits", flows=flows)
        yield from execute("forget_flow_edges", flows=flows)
        yield from execute("forget_flow_jobs", flows=flows)
        yield from execute("forget_flows", flows=flows)
    return len(flows)
