"""A process that dies at any point of a declared move leaves the move with its history, or neither."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from fencerow.db.run import Operation
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case, Unrecovered, crash_everywhere
from tests.guards.transitions.tables import LEASE_S
from tests.proof.race.moved import Raced

DONE = {"status": "succeeded", "boxes_status": "pending"}


def cases(raced: Raced) -> dict[str, Case]:
    """Each verb, what was before it, and how a caller goes on who does not know what became of it."""
    claim = raced.move("claim")

    def case(name: str, operation: Operation[Any], *before: Operation[Any], **columns: str) -> Case:
        def react() -> Script:
            yield from as_told(raced)
            yield operation  # again: it moves what it has not moved yet, and nothing twice
            yield from as_told(raced)

        return Case(name, raced.prepared(*before, **columns), operation, react)

    found = [
        case("a claim", claim),
        case("a claim that takes a stale row", claim, claim, later(LEASE_S + 1)),
        case("a move under a fence", raced.move("succeed_with_boxes", fence=1), claim),
        case("a move that tells why not", raced.why("cancel"), claim),
        case("taking", raced.take("claim", 2)),
        case("taking what is stale", raced.take("claim", 2), claim, later(LEASE_S + 1)),
        case("a renewal", raced.renew(1), claim),
        case("reaping", raced.reap(), raced.move("claim", sub="boxes"), later(LEASE_S + 1), **DONE),
    ]
    return {each.name: each for each in found}


def as_told(raced: Raced) -> Script:
    """The row is where its history says, and each line starts where the one before ended."""
    row, lines = (yield raced.read()), (yield raced.told())
    column, fence = ("boxes_status", "boxes_fence") if row["boxes_fence"] else ("status", "attempts")
    assert row[fence] == sum(line[0] == "claim" for line in lines), "a claim without its line"
    for earlier, following in pairwise(lines):
        assert earlier[2] == following[1], lines
    if lines:
        assert row[column] == lines[-1][2], lines


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
def test_every_point_of_every_verb_is_survived(
    mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    raced = Raced(arenas[mode], history=True)
    for name, case in cases(raced).items():
        number, seconds = crash_everywhere(arenas[mode], case)

        facts = {"scenario": f"crash in {name} of a row", "mode": mode, "played": number, "total": number}
        record_property("crash", json.dumps({**facts, "seconds": seconds}))


def test_a_move_and_its_line_in_two_transactions_are_caught(arenas: Mapping[str, Any]) -> None:
    """What it would be without one transaction around both."""
    raced = Raced(arenas["plain"], history=True)
    whole = cases(raced)["a claim"]

    with pytest.raises(Unrecovered, match="without its line"):
        crash_everywhere(
            arenas["plain"], replace(whole, operation=msgspec.structs.replace(whole.operation, alone=True))
        )
