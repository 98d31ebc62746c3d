"""What is done to many jobs in one call on SQLite grows as they do, and not as their square."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from fencerow.db.run import Param
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_connection import bound
from fencerow.limits import Limit
from tests.kit.jobs import new_job, submit
from tests.turns.test_turns import hand_over
from tests.turns.test_who_goes import limited

FEW, MANY = 50, 400


def steps(engine: SqliteEngine, name: str, params: Mapping[str, Param]) -> int:
    """What the query takes, in tens of instructions of the file's machine."""
    counted = 0

    def ten() -> int:
        nonlocal counted
        counted += 1
        return 0

    query = engine.queries[name]
    with engine.session() as session:
        session.connection.set_progress_handler(ten, 10)
        for text in query.statements:
            session.connection.execute(text, bound(params, query.parameters)).fetchall()
        session.connection.set_progress_handler(None, 0)
    return counted


def of(name: str, ids: list[str]) -> Mapping[str, Param]:
    """Its parameters for these jobs."""
    sent = msgspec.json.encode([{"id": each, "gate": "limit:a", "why": "paused"} for each in ids]).decode()
    if name == "send_on":
        return {"sent": sent}
    if name == "take_turns_back":
        return {"ids": ids, "taken": sent, "actor": None}
    gates = [f"key:{each}" for each in ids]
    if name == "count_turns":
        return {"gates": gates, "counted": [f"limit:keyed/{each}" for each in ids], "kept_s": 60.0}
    return {"gates": gates, "stopped": [], "unclaimed_s": 60.0}


def under_a_limit(engine: SqliteEngine) -> list[str]:
    limited(engine, Limit("a", at_once=MANY))
    return submit(engine, *(new_job(limits=("a",)) for _ in range(MANY)))


@pytest.mark.parametrize("name", ["send_on", "take_turns_back"])
def test_eight_times_as_many_jobs_take_about_eight_times_as_long(lite: SqliteEngine, name: str) -> None:
    ids = under_a_limit(lite)
    if name == "take_turns_back":
        assert len(hand_over(lite)) == MANY

    few, many = (steps(lite, name, of(name, ids[:count])) for count in (FEW, MANY))

    assert many < 2 * MANY / FEW * few


def test_turns_that_nobody_uses_are_found_without_a_look_at_all_gates_for_each(lite: SqliteEngine) -> None:
    ids = under_a_limit(lite)
    assert len(hand_over(lite)) == MANY

    few, many = (
        steps(lite, "find_unused_turns", of("find_unused_turns", ids[:count])) for count in (FEW, MANY)
    )

    assert many < 4 * few, "of the same jobs"


def test_turns_are_counted_without_a_look_at_all_gates_for_each_whatever_the_planner_believes(
    lite: SqliteEngine,
) -> None:
    """Statistics of a file that was nearly empty tell it that a walk over everything is short."""
    limited(lite, Limit("keyed", at_once=1, per_key=True))
    names = [str(number) for number in range(MANY)]

    def come(names: list[str]) -> None:
        submit(lite, *(new_job(limits=(f"keyed/{each}",), exclusive=each) for each in names))
        assert len(hand_over(lite)) == len(names)

    come(names[:1])
    with lite.session() as session:
        session.connection.execute("ANALYZE")
    come(names[1:FEW])
    few = steps(lite, "count_turns", of("count_turns", names[:FEW]))
    come(names[FEW:])
    many = steps(lite, "count_turns", of("count_turns", names))

    assert many < 2 * MANY / FEW * few
