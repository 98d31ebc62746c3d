"""A worker says how it is from any thread, and calls ill only what it cannot mend itself."""

from __future__ import annotations

import pytest

from fencerow.core.config import CoreConfig
from fencerow.core.worker.vitals import KEEPER_S_MIN, found_faults


def faults(config: CoreConfig, keeper_silent_s: float = 0.0, loop_silent_s: float = 0.0) -> tuple[str, ...]:
    return found_faults(
        config, keeper_silent_s=keeper_silent_s, loop_silent_s=loop_silent_s, drain_s=config.drain_s(600.0)
    )


@pytest.mark.parametrize(("lease_s", "bound_s"), [(1.0, KEEPER_S_MIN), (30.0, 60.0), (300.0, 600.0)])
def test_a_keeper_that_makes_no_turn_for_two_leases_is_a_fault(lease_s: float, bound_s: float) -> None:
    config = CoreConfig(lease_s=lease_s, renew_s=0.3)

    assert faults(config, keeper_silent_s=bound_s) == ()
    assert faults(config, keeper_silent_s=bound_s + 2) == (
        f"the keeper has made no turn for {bound_s + 2:.0f} s",
    )


def test_a_loop_may_be_blocked_for_as_long_as_any_job_may_take() -> None:
    config = CoreConfig()

    assert faults(config, loop_silent_s=630.0) == ()
    assert faults(config, loop_silent_s=632.0) == ("the event loop has not answered for 632 s",)
