"""What is told of jobs that are stored or queued again: one hint for each lane, and one for all gates."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fencerow.core.model.wakeup import Arrived, Queued, encode
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of, hints_of_alike, hints_of_queued
from tests.kit.jobs import new_job


def test_each_lane_and_the_gates_are_told_once() -> None:
    jobs = [Requeued(f"{at}", "q", 0, 100 - at) for at in range(3)]
    at_gates = [Requeued(f"gate {at}", "q", 0, 1, waits=True) for at in range(2)]

    assert hints_of_queued([*jobs, *at_gates]) == [encode(Queued("q", 0, 98, "")), encode(Arrived())]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"priority": 7},
        {"delay_s": 5.0},
        {"run_at_us": 1},
        {"share": "s"},
        {"affinity": "gpu"},
        {"exclusive": "k"},
        {"limits": ("l",)},
    ],
    ids=str,
)
def test_of_jobs_that_are_alike_one_tells_what_all_do(said: dict[str, Any]) -> None:
    job = new_job(**said)

    assert hints_of_alike(job) == hints_of([job, job])


def test_of_new_jobs_those_with_their_turn_are_told_as_plain_ones() -> None:
    waits = new_job(exclusive="k")
    has_turn = msgspec.structs.replace(waits, has_turn=True)

    assert hints_of([waits]) == [encode(Arrived())]
    assert hints_of([has_turn]) == hints_of([new_job()]) != []
