"""A declaration that cannot work is refused where it stands, with what is wrong and where."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.errors import MovesMisdeclared
from fencerow.guards.transitions import Lease, Move, Overdue, SubState, Transitions

LEASE = Lease(lease_s=60, since="started_at", fence="attempts")
GOOD: dict[str, Any] = {
    "table": "documents",
    "column": "status",
    "states": ["queued", "running", "done"],
    "moves": [Move("claim", "queued", "running", lease=LEASE), Move("finish", "running", "done")],
}


def declared(**changes: Any) -> Transitions:
    # Nothing here reaches a database.
    return Transitions(None, **{**GOOD, **changes})  # type: ignore[arg-type]


def claim(**changes: Any) -> Lease:
    return Lease(**{"lease_s": 60, "since": "started_at", "fence": "attempts", **changes})


def moves(*more: Move, lease: Lease = LEASE) -> dict[str, Any]:
    return {"moves": [Move("claim", "queued", "running", lease=lease), *more]}


def boxes(**changes: Any) -> dict[str, Any]:
    good: dict[str, Any] = {
        "name": "boxes",
        "column": "boxes_status",
        "states": ["pending", "done"],
        "moves": [Move("finish", "pending", "done")],
        "within": "done",
    }
    return {"sub_states": [SubState(**{**good, **changes})]}


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("unknown state 'gone'", moves(Move("a", "gone", "done"))),
    ("unknown state 'gone'", moves(Move("a", "queued", "gone"))),
    ("unknown state None", moves(Move("a", None, "done"))),
    ("move 'claim' is declared twice", moves(Move("claim", "running", "done"))),
    ("state 'queued' is declared twice", {"states": ["queued", "running", "done", "queued"]}),
    ("has no source", moves(Move("a", [], "done"))),
    ("'' is no usable state", {"states": ["queued", "running", "done", ""]}),
    ("is no usable state", {"states": ["queued", "running", "done", "a\nb"]}),
    ("'a b' is no usable name for a move", moves(Move("a b", "queued", "done"))),
    ("is no usable name for the table", {"table": 'docs"; DROP TABLE x'}),
    ("is no name of a table", {"table": "a.b.c"}),
    ("is no usable name for a state column", {"column": "status; --"}),
    ("is no usable name for the id column", {"id": "1d"}),
    (
        "column 'done_at' is declared twice",
        moves(Move("a", "queued", "done", stamps="done_at", sets="done_at")),
    ),
    ("'a' writes 'attempts'", moves(Move("a", "running", "done", clears="attempts"))),
    ("'a' writes 'id'", moves(Move("a", "queued", "done", sets="id"))),
    ("contains ;", moves(Move("a", "queued", "done", where="true; DROP TABLE x"))),
    ("uses :fencerow_id", moves(Move("a", "queued", "done", where="x = :fencerow_id"))),
    ("no one column", moves(lease=claim(until="lease_until"))),
    ("no one column", moves(lease=claim(since=None))),
    ("is 0 s", moves(lease=claim(lease_s=0))),
    ("is nan s", moves(lease=claim(lease_s=float("nan")))),
    ("among its sources", {"moves": [Move("claim", ["queued", "running"], "running", lease=LEASE)]}),
    (
        "different leases",
        moves(Move("other", "queued", "running", lease=claim(lease_s=30)), Move("finish", "running", "done")),
    ),
    ("when_spent=None", moves(lease=claim(attempts_max=3))),
    ("attempts_max=None", moves(Move("end", ["queued", "running"], "done"), lease=claim(when_spent="end"))),
    (
        "attempts_max=0",
        moves(Move("end", ["queued", "running"], "done"), lease=claim(attempts_max=0, when_spent="end")),
    ),
    ("'claim' writes 'status'", moves(lease=claim(sets="status"))),
    ("column 'started_at' is declared twice", moves(lease=claim(sets="started_at"))),
    ("is no usable name for a column", moves(lease=claim(sets="a b"))),
    (
        "does not start from 'queued'",
        moves(Move("end", "running", "done"), lease=claim(attempts_max=3, when_spent="end")),
    ),
    ("the reaper is to make the move 'end'", moves(lease=claim(when_stale="end"))),
    (
        "has no parameters",
        moves(Move("end", "running", "done", where="tenant = :tenant"), lease=claim(when_stale="end")),
    ),
    ("overdue names state 'gone'", {"overdue": [Overdue("gone", "at", 60)]}),
    ("after 0 s", {"overdue": [Overdue("queued", "at", 0)]}),
    ("use the lease's when_stale", {"overdue": [Overdue("running", "at", 60, move="finish")]}),
    ("within is empty", boxes(within=())),
    ("expected main states", boxes(within="pending")),
    ("state column 'status' is declared twice", boxes(column="status")),
    ("only main moves do", boxes(moves=[Move("finish", "pending", "done", enters={"boxes": "done"})])),
    (
        "enters 'boxes' in state 'gone'",
        {**boxes(), **moves(Move("end", "running", "done", enters={"boxes": "gone"}))},
    ),
    ("enters 'box' in state", moves(Move("end", "running", "done", enters={"box": "pending"}))),
    ("sub-state 'boxes'", boxes(states=["pending"])),
]


@pytest.mark.parametrize(("told", "changes"), WRONG, ids=[told for told, _ in WRONG])
def test_what_cannot_work_is_refused(told: str, changes: dict[str, Any]) -> None:
    with pytest.raises(MovesMisdeclared) as caught:
        declared(**changes)

    assert told in str(caught.value)
    assert caught.value.why and caught.value.fix


def test_a_reaper_that_has_nothing_to_do_is_refused() -> None:
    with pytest.raises(MovesMisdeclared, match="nothing for a reaper of documents"):
        declared().reaper()


def test_what_can_work_is_not() -> None:
    assert declared().declared.table.quoted == '"documents"'
    assert declared(table="Billing.Documents").declared.table.quoted == '"Billing"."Documents"'
    assert list(declared(**boxes()).declared.subs) == ["boxes"]


def test_the_diagram_is_drawn_from_it() -> None:
    drawn = declared(
        states=["queued", "running", "in review", "done"],
        moves=[*GOOD["moves"], Move("look", "done", "in review")],
        **boxes(moves=[Move("finish", "pending", "done"), Move("ask", None, "pending")]),
    ).diagram()

    assert (
        drawn
        == """\
stateDiagram-v2
    state "in review" as s2
    [*] --> queued
    queued --> running : claim
    running --> running : claim (stale)
    running --> done : finish
    done --> s2 : look
    s2 --> [*]
    state "boxes, within done" as boxes_box {
        state "pending" as boxes_pending
        state "done" as boxes_done
        boxes_pending --> boxes_done : finish
        [*] --> boxes_pending : ask
        boxes_done --> [*]
    }
"""
    )
