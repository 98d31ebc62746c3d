"""What every worker of an app does for flows, loaded once there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from fencerow.core.background.dormant import Dormant
from fencerow.core.chore import Chore
from fencerow.core.model.wakeup import FlowMoved, JobsEnded, WakeUp
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine

USED = "flows_used"
LOOK_S = 5.0  # how often a worker looks whether there is a flow, beside what it is told
EXPECT_S = 60.0  # how long it expects the flow that a handler here has handed over

# Until when a flow may come with the success of a handler of this process: nobody tells of it.
_expected: WeakKeyDictionary[Engine, float] = WeakKeyDictionary()


def expect_flow(engine: Engine) -> None:
    """An attempt of this process will store a flow with its success: ends that are told now may be of its jobs."""
    _expected[engine] = time.monotonic() + EXPECT_S


class FlowChore(Dormant):
    """Wakes jobs of flows. It also hears ends while a flow is expected, of which it cannot know yet."""

    def __init__(self, engine: Callable[[], Engine], make: Callable[[], Chore]) -> None:
        super().__init__("flows", engine, USED, make, every_s=LOOK_S, hears=(FlowMoved, JobsEnded))

    def for_worker(self) -> Chore:
        return FlowChore(self.engine, self._make)

    def is_for(self, message: WakeUp | None) -> bool:
        if not isinstance(message, JobsEnded):
            return super().is_for(message)
        return (self._chore is not None and self._chore.is_for(message)) or self._expects()

    async def queues_soon(self) -> bool:
        from fencerow.flows.waits import any_wait_over
        from fencerow.flows.waking import flows_wanted

        wanted = await self.engine().arun(flows_wanted())
        return wanted.untold or (wanted.awaited and await self.engine().arun(any_wait_over()))

    def _expects(self) -> bool:
        # Asked at each end that is told: in a program without flows nothing is looked up for it.
        return bool(_expected) and _expected.get(self.engine(), 0.0) > time.monotonic()


def flow_chore(engine: Callable[[], Engine], telemetry: Telemetry) -> Chore:
    """The chore that wakes jobs of flows."""

    def waker() -> Chore:
        from fencerow.flows.waker import FlowWaker

        return FlowWaker(engine, telemetry)

    return FlowChore(engine, waker)
