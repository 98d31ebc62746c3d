"""Flows that do not go on by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation
from fencerow.db.text import amount, shown

LATE_S = 60.0
SHOWN_MAX = 5
LOOKED_AT = 10_000


class FlowTroubles(msgspec.Struct, frozen=True):
    """How many flows have not ended (up to 10,000 are counted), how many ends nobody has told for long; flows of which
    nobody is left who could wake the others; and callbacks that were refused. Each as id and what is said of it."""

    live: int
    untold: int
    stuck: list[tuple[str, str]]
    refused: list[tuple[str, str]]


@operation(repeatable=True, writes="")
def flow_troubles(*, age_s: float, limit: int) -> Steps[FlowTroubles]:
    """What stands still."""
    ((live, untold),) = yield from execute("count_flow_troubles", age_s=age_s, limit=LOOKED_AT)
    stuck = yield from execute("stuck_flows", age_s=age_s, limit=limit, look=LOOKED_AT)
    refused = yield from execute("refused_callbacks", limit=limit)
    return FlowTroubles(
        as_int(live),
        as_int(untold),
        [(str(row[0]), str(row[1])) for row in stuck],
        [(str(row[0]), str(row[1])) for row in refused],
    )


def examine_flows(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Whether somebody wakes the jobs of flows, and which flows nobody can wake any more."""
    found = engine.run(flow_troubles(age_s=LATE_S, limit=SHOWN_MAX))
    yield ok("flows", f"{amount(found.live, 'flow')} under way")
    if found.untold:
        yield warn(
            "flows that nobody wakes",
            f"{amount(found.untold, 'job')} of flows ended more than {LATE_S:g} s ago, and no worker has looked at "
            "those that wait for them",
            "start a worker; or take FENCEROW_FLOWS=off from one",
        )
    for flow_id, name in found.stuck:
        yield warn(
            "flow with nobody to wake it",
            f"flow {flow_id} ({shown(name)}) has jobs that wait, and all that they wait for have ended",
            f"`fencerow flows revive {flow_id}` runs again what failed; `fencerow flows cancel {flow_id}` ends it",
        )
    for job_id, trouble in found.refused:
        yield warn(
            "callback of a flow that was refused",
            f"job {job_id} could not be made: {trouble}",
            "submit its work by hand",
        )
