"""What every worker of an app does for flows, loaded once there is one."""

from __future__ import annotations

from collections.abc import Callable

from fencerow.core.background.dormant import Dormant
from fencerow.core.chore import Chore
from fencerow.core.db.engine import Engine
from fencerow.core.model.wakeup import FlowMoved
from fencerow.core.telemetry import Telemetry

USED = "flows_used"
LOOK_S = 5.0  # how often a worker looks whether there is a flow, beside what it is told


def flow_chore(engine: Callable[[], Engine], telemetry: Telemetry) -> Chore:
    """The chore that wakes jobs of flows."""

    def waker() -> Chore:
        from fencerow.flows.waker import Waker

        return Waker(engine, telemetry)

    return Dormant("flows", engine, USED, waker, every_s=LOOK_S, hears=(FlowMoved,))
