"""Whatever dies at whatever point of whatever operation: nothing is lost, and everything can end."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from fencerow.clocks import ahead
from fencerow.core.store import store
from fencerow.operators import queues
from fencerow.retention import disown, periods, purging
from fencerow.turns import handing, looks
from fencerow.unique import keys
from fencerow_proof.arena.crash import Case, Unrecovered, crash_everywhere
from tests.proof.crash.cases import CASES, ON_POSTGRES, swept
from tests.proof.crash.operations import is_operation
from tests.proof.race.people import FIRST, JOB, fail, reclaim, with_running, with_zombie

BY_NAME = {case.name: case for case in (*CASES, *ON_POSTGRES)}
# Played elsewhere: its tables are not there before it (proof/race/test_migrate.py, proof/crash/test_kill.py).
# Periods are of PostgreSQL alone: tests/retention/test_periods.py breaks them off.
PERIODS = {
    "close_periods", "detach_period", "drop_period", "finalize_period", "forget_lost_periods",
    "forget_period_notes", "leave_period",
    "make_period", "owns_periods", "periods", "take_period",
}  # fmt: skip
ELSEWHERE = {"ledger", "is_used", *PERIODS}


@pytest.mark.parametrize(
    ("mode", "name"),
    [("plain", name) for name in BY_NAME] + [("sqlite", case.name) for case in CASES],
)
def test_every_point_of_it_is_survived(
    name: str, mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    number, seconds = crash_everywhere(arenas[mode], BY_NAME[name])

    facts = {
        "scenario": f"crash in {BY_NAME[name].operation.name}",
        "mode": mode,
        "played": number,
        "total": number,
    }
    record_property("crash", json.dumps({**facts, "seconds": seconds}))


def test_every_operation_of_the_store_is_among_them() -> None:
    verbs = {
        name
        for module in (store, ahead, disown, handing, keys, looks, periods, purging, queues)
        for name, verb in inspect.getmembers(module, inspect.isfunction)
        if is_operation(verb)
    }

    assert verbs - {case.operation.name for case in BY_NAME.values()} == ELSEWHERE


# Controls: a fault in the recovery must be seen.


def red(arenas: Mapping[str, Any], mode: str, case: Case, query: str, old: str, new: str) -> str:
    arena = arenas[mode]
    whole = arena.queries
    arena.queries = whole.altered(query, old, new)
    try:
        with pytest.raises(Unrecovered) as caught:
            crash_everywhere(arena, case)
    finally:
        arena.queries = whole
    return str(caught.value)


def test_a_job_of_the_dead_is_stuck_when_nobody_names_its_holder(arenas: Mapping[str, Any]) -> None:
    told = red(
        arenas,
        "plain",
        BY_NAME["claim, the worker gone"],
        "dead_holders",
        "('dead', 'retired')",
        "('retired')",
    )

    assert "does not come to its end" in told


def test_an_ended_job_is_stuck_when_it_is_not_moved(arenas: Mapping[str, Any]) -> None:
    told = red(
        arenas, "plain", BY_NAME["fail"], "archive", "'succeeded', 'failed', 'cancelled'", "'succeeded'"
    )

    assert "live_state" in told


def test_a_suspect_is_stuck_when_nobody_claims_suspects(arenas: Mapping[str, Any]) -> None:
    case = swept("a suspect", with_zombie, reclaim(FIRST), JOB)

    red(arenas, "plain", case, "count_suspects", "SELECT count(*)", "SELECT 99 + count(*)")


def test_a_finished_job_runs_again_when_a_repeat_is_not_withdrawn(arenas: Mapping[str, Any]) -> None:
    red(
        arenas,
        "plain",
        BY_NAME["resubmit of a finished job"],
        "withdraw",
        "job.attempt = 0",
        "job.attempt < 0",
    )


def test_one_operation_in_two_transactions_is_caught(arenas: Mapping[str, Any]) -> None:
    """What `fail` would be without one transaction around both of its statements."""
    whole = fail(FIRST)
    split = replace(whole, alone=True)

    with pytest.raises(Unrecovered, match="live_state"):
        crash_everywhere(arenas["plain"], swept("split fail", with_running(), split, JOB))
