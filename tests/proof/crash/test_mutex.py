"""Whatever dies at whatever point of an operation on a mutex: it is usable again, and its token never went back."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest

from fencerow.guards.mutex import advisory, mutexes
from fencerow_proof.arena.crash import Unrecovered, crash_everywhere
from tests.proof.crash.mutexes import MUTEX_CASES
from tests.proof.crash.operations import is_operation

BY_NAME = {case.name: case for case in MUTEX_CASES}


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
@pytest.mark.parametrize("name", BY_NAME)
def test_every_point_of_it_is_survived(
    name: str, mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    number, seconds = crash_everywhere(arenas[mode], BY_NAME[name])

    facts = {"scenario": f"crash in {name}", "mode": mode, "played": number, "total": number}
    record_property("crash", json.dumps({**facts, "seconds": seconds}))


def test_every_operation_on_mutexes_is_among_them() -> None:
    verbs = {
        name
        for module in (mutexes, advisory)
        for name, verb in inspect.getmembers(module, inspect.isfunction)
        if is_operation(verb) and verb.__module__ == module.__name__
    }

    assert verbs == {case.operation.name for case in MUTEX_CASES}


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
def test_a_dead_holder_blocks_all_when_time_does_not_count(mode: str, arenas: Mapping[str, Any]) -> None:
    arena = arenas[mode]
    whole = arena.queries
    clock = '(SELECT "fencerow".now())' if mode == "plain" else "fencerow_now()"
    arena.queries = whole.altered("take_mutex", f"until <= {clock}", "until IS NULL")
    try:
        with pytest.raises(Unrecovered, match="nobody gets it any more"):
            crash_everywhere(arena, BY_NAME["take_mutex, the caller gone"])
    finally:
        arena.queries = whole


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
def test_a_token_goes_back_when_a_purge_forgets_it_too(mode: str, arenas: Mapping[str, Any]) -> None:
    arena = arenas[mode]
    whole = arena.queries
    highest = "CAST(:token AS bigint)" if mode == "plain" else ":token"
    arena.queries = whole.altered("raise_mutex_floor", f"SELECT 1, {highest}", f"SELECT 1, {highest} - 1")
    try:
        with pytest.raises(Unrecovered, match="after token 1 came 1"):
            crash_everywhere(arena, BY_NAME["purge"])
    finally:
        arena.queries = whole
