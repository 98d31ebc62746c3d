"""Whatever is asked, in whatever order and with whatever fence: only declared moves ever happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import InvalidMove
from fencerow.guards.transitions import Moves, Transitions
from fencerow.guards.transitions.composing import Written
from fencerow.guards.transitions.machine import Machine
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.guards.transitions.tables import (
    LEASE_S,
    MOVES,
    SUB_MOVES,
    AtEngine,
    create,
    extractions,
    sql,
)
from tests.kit.jobs import AnyEngine

ROWS = ("a", "b", "c")
FENCES = {"": "attempts", "boxes": "boxes_fence"}
NAMES = {"": [move.name for move in MOVES], "boxes": [move.name for move in SUB_MOVES]}


@dataclass(frozen=True)
class Step:
    """Something that a program does; `fence` is how far it is from the one that the row has."""

    verb: str
    sub: str
    move: str
    row: str
    fence: int | None


def steps() -> st.SearchStrategy[list[Step | float]]:
    def step(sub: str) -> st.SearchStrategy[Step]:
        return st.builds(
            Step,
            st.sampled_from(["move"] * 6 + ["renew", "take", "reap"]),
            st.just(sub),
            st.sampled_from(NAMES[sub]),
            st.sampled_from(ROWS),
            st.sampled_from([0, 0, 0, None, -1, 1]),
        )

    passing = st.sampled_from([1.0, LEASE_S / 2, LEASE_S + 1])
    return st.lists(st.one_of(step(""), step(""), step("boxes"), passing), max_size=30)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=steps())
def test_only_declared_moves_ever_happen(
    documents: Transitions, engine: AnyEngine, table: str, clock: DatabaseClock, story: list[Step | float]
) -> None:
    play(documents, engine, table, clock, story)


@pytest.mark.prove  # a control: it tests the test above
@pytest.mark.parametrize(
    ("cut", "told"),
    [
        ('AND "attempts" = :fencerow_fence', "another's fence"),
        ("\"status\" = 'queued'", "is no declared move|assert"),
        ("AND \"status\" IN ('succeeded')", "assert"),
    ],
    ids=["fence", "state", "within"],
)
def test_others_are_found_when_a_guard_is_gone(
    lite: SqliteEngine, cut: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""
    whole = Written.composed
    new = "" if cut.startswith("AND") else "true"

    def cut_out(self: Written, name: str, text: str) -> Any:
        head, where, conditions = text.partition("WHERE")  # before it, the same words say what is set
        return whole(self, name, head + where + conditions.replace(cut, new))

    monkeypatch.setattr(Written, "composed", cut_out)
    table, clock = create(lite), clock_of(lite)
    documents = extractions(AtEngine(lite), table)

    @settings(max_examples=400, deadline=None, phases=[Phase.generate], database=None, derandomize=True)
    @given(story=steps())
    def played(story: list[Step | float]) -> None:
        play(documents, lite, table, clock, story)

    with pytest.raises(AssertionError, match=told):
        played()


def play(
    documents: Transitions, engine: AnyEngine, table: str, clock: DatabaseClock, story: list[Step | float]
) -> None:
    sql(engine, f"DELETE FROM {table}")
    for row_id in ROWS:
        sql(engine, f"INSERT INTO {table} (id, status) VALUES (:id, 'queued')", id=row_id)
    before = look(engine, table)
    for step in story:
        if isinstance(step, float):
            clock.advance(step)
            continue
        answered = done(documents, step, before[step.row])
        after = look(engine, table)
        for row_id in ROWS:
            if row_id in answered:
                moved(documents, step, before[row_id], after[row_id])
            else:
                assert after[row_id] == before[row_id], f"{step} changed {row_id} and did not say so"
        before = after
    clock.close()


def look(engine: AnyEngine, table: str) -> dict[str, dict[str, Any]]:
    names = [
        "id",
        "status",
        "attempts",
        "boxes_status",
        "boxes_fence",
        "started_at",
        "boxes_until",
        "finished_at",
    ]
    rows = sql(engine, f"SELECT {', '.join(names)} FROM {table}")
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


def done(documents: Transitions, step: Step, row: dict[str, Any]) -> set[str]:
    """Do it; returns the rows that are said to have moved."""
    moves: Moves = documents.sub(step.sub) if step.sub else documents
    fence = None if step.fence is None else (row[FENCES[step.sub]] or 0) + step.fence
    params = {"tenant": "x"} if step.move == "claim_of_tenant" else None
    try:
        match step.verb:
            case "move":
                found = [moves.move(step.move, step.row, fence=fence, params=params)]
            case "renew":
                found = [moves.renew("claim", step.row, fence=fence or 0)]
            case "take":
                found = [*moves.take(step.move, 2, params=params)]
            case _:
                found = [each for rows in moves.reap().moved.values() for each in rows]
    except InvalidMove:
        return set()
    return {each["id"] for each in found if each is not None}


def moved(documents: Transitions, step: Step, before: dict[str, Any], after: dict[str, Any]) -> None:
    """What was answered is a declared move, from the state it was in, and under its fence."""
    declared = documents.declared
    machine: Machine = declared.subs[step.sub] if step.sub else declared.main
    pair = (before[machine.column], after[machine.column])
    claimed = after[FENCES[step.sub]] != before[FENCES[step.sub]]
    if step.verb == "renew":
        assert pair[0] == pair[1] == "running" and not claimed and step.fence == 0
        return
    legal = [name for name, move in machine.moves.items() if pair in machine.pairs(move)]
    assert legal if step.verb == "reap" else step.move in legal, f"{step}: {pair} is no declared move"
    assert claimed == (machine.moves[step.move].lease is not None if step.verb != "reap" else False)
    assert not claimed or after[FENCES[step.sub]] == (before[FENCES[step.sub]] or 0) + 1
    if step.verb == "move" and before[machine.column] == "running" and not claimed:
        assert step.fence == 0 or machine.moves[step.move].by_anyone, f"{step} went under another's fence"
    if machine.within:
        assert before["status"] in machine.within
