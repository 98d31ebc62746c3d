"""Whatever dies in an operation on flows, steps or endpoints, at any point: who waits goes on, and memory is whole."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest

from fencerow.flows import moving, removal, storing, waits, waking
from fencerow.steps import memory, reviving, signals, waker
from fencerow.web.worked import answers, attempts
from fencerow.web.worked import waker as overdue
from fencerow_proof.arena.crash import Unrecovered, crash_everywhere
from tests.proof.crash.operations import is_operation
from tests.proof.crash.parts import FLOW_CASES, STEP_CASES
from tests.proof.crash.sagas import SAGA_CASES
from tests.proof.crash.worked import WORKED_CASES

BY_NAME = {
    **{f"flows: {case.name}": case for case in FLOW_CASES},
    **{f"steps: {case.name}": case for case in STEP_CASES},
    **{f"saga: {case.name}": case for case in SAGA_CASES},
    **{f"worked: {case.name}": case for case in WORKED_CASES},
}
# `mend` heals what no case may begin with (tests/flows/test_running.py); `forget_from` is a part of `revive_from`;
# `submit_flow_within` locks its attempt's row and is `submit_flow` from there; `standing`, `name_of` and
# `count_flow_jobs_left` only look.
ELSEWHERE = {"mend", "forget_from", "submit_flow_within", "standing", "name_of", "count_flow_jobs_left"}


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
@pytest.mark.parametrize("name", BY_NAME)
def test_every_point_of_it_is_survived(
    name: str, mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    number, seconds = crash_everywhere(arenas[mode], BY_NAME[name])

    facts = {"scenario": f"crash in {name}", "mode": mode, "played": number, "total": number}
    record_property("crash", json.dumps({**facts, "seconds": seconds}))


def test_every_operation_of_these_parts_is_among_them() -> None:
    modules = (storing, waking, moving, removal, waits, memory, reviving, signals, waker)
    verbs = {
        name
        for module in (*modules, attempts, answers, overdue)
        for name, verb in inspect.getmembers(module, inspect.isfunction)
        if is_operation(verb) and verb.__module__ == module.__name__
    }

    assert verbs - {case.operation.name for case in BY_NAME.values()} == ELSEWHERE


def test_who_waits_is_stuck_when_an_end_is_not_told_to_be(arenas: Mapping[str, Any]) -> None:
    arena = arenas["plain"]
    whole = arena.queries
    arena.queries = whole.altered("take_flow_ends", "AND NOT untold.told", "AND untold.told")
    try:
        with pytest.raises(Unrecovered, match="does not come to its end"):
            crash_everywhere(arena, BY_NAME["flows: advance"])
    finally:
        arena.queries = whole


def test_a_job_sleeps_on_when_nobody_looks_for_the_due(arenas: Mapping[str, Any]) -> None:
    arena = arenas["plain"]
    whole = arena.queries
    arena.queries = whole.altered("due_waits", "due.look_at <=", "due.look_at >")
    try:
        with pytest.raises(Unrecovered, match="nobody wakes it"):
            crash_everywhere(arena, BY_NAME["steps: wake_due"])
    finally:
        arena.queries = whole


def test_nothing_is_undone_when_the_end_does_not_say_so(arenas: Mapping[str, Any]) -> None:
    arena = arenas["plain"]
    whole = arena.queries
    arena.queries = whole.altered("archive", "AND saga.ended_at IS NULL", "AND false")
    try:
        with pytest.raises(Unrecovered, match="its compensation is None"):
            crash_everywhere(arena, BY_NAME["saga: fail"])
    finally:
        arena.queries = whole


def test_an_endpoint_is_slept_through_when_its_answer_wakes_nobody(arenas: Mapping[str, Any]) -> None:
    arena = arenas["plain"]
    whole = arena.queries
    arena.queries = whole.altered("wake", "sent.answered_at IS NOT NULL", "false")
    try:
        with pytest.raises(Unrecovered, match="nobody wakes it"):
            crash_everywhere(arena, BY_NAME["worked: answer"])
    finally:
        arena.queries = whole
