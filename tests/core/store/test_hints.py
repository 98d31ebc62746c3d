"""What is told of jobs that are queued again: one hint for each lane, and one for all gates."""

from __future__ import annotations

from fencerow.core.model.wakeup import Arrived, Queued, encode
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued


def test_each_lane_and_the_gates_are_told_once() -> None:
    jobs = [Requeued(f"{at}", "q", 0, 100 - at) for at in range(3)]
    at_gates = [Requeued(f"gate {at}", "q", 0, 1, waits=True) for at in range(2)]

    assert hints_of_queued([*jobs, *at_gates]) == [encode(Queued("q", 0, 98, "")), encode(Arrived())]
