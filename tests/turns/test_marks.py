"""Behind which arrivals a worker looks: what was taken stays in the index while somebody holds an old snapshot."""

from __future__ import annotations

import psycopg

from fencerow.db.postgres import PostgresEngine
from fencerow.turns import handing, looks
from fencerow.turns.marks import OPEN_S, SHARE, ArrivalMark
from tests.core.store.stage import rows
from tests.core.store.test_plans import nodes, touched
from tests.kit.jobs import AnyEngine, new_job, submit

MANY = 20_000


def looked(mark: ArrivalMark, began_s: float, cost_s: float = 0.01) -> int:
    """One look that costs so much; returns behind which arrival it was."""
    after = mark.after(began_s)
    if not after:
        mark.looked_at_all(began_s + cost_s)
    return after


def test_it_looks_behind_what_was_taken_some_seconds_ago() -> None:
    mark = ArrivalMark()
    mark.took(7, 100.0)
    mark.took(9, 103.0)
    assert looked(mark, 103.5) == 0, "who was given 8 may not have committed yet"

    assert looked(mark, 100.5 + OPEN_S) == 0, "now and then it looks at all"
    assert looked(mark, 100.6 + OPEN_S) == 7
    assert looked(mark, 103.1 + OPEN_S) == 0
    assert looked(mark, 103.2 + OPEN_S) == 9


def test_the_longer_a_look_at_all_takes_the_less_often_it_comes() -> None:
    mark = ArrivalMark()
    mark.took(7, 0.0)
    assert looked(mark, 100.0, cost_s=0.5) == 0
    assert looked(mark, 100.5 + 0.5 * SHARE - 0.1) == 7
    assert looked(mark, 100.5 + 0.5 * SHARE + 0.1) == 0


def test_who_comes_after_all_were_taken_is_found_behind_them(engine: AnyEngine) -> None:
    """A file gives the id of an arrival again once it was the greatest and was taken."""
    submit(engine, new_job(exclusive="a"), new_job(exclusive="b"))
    taken = engine.run(handing.hand_over()).last
    (later,) = submit(engine, new_job(exclusive="c"))

    assert engine.run(looks.turns_wanted(taken)).arrived
    assert [job.id for job in engine.run(handing.hand_over(after=taken)).queued] == [later]


def test_a_look_behind_the_mark_touches_none_of_those_that_were_taken(pg: PostgresEngine) -> None:
    rows(pg, "INSERT INTO fencerow.gate_arrivals (gate) VALUES ('key:first')")
    with psycopg.connect(pg.conninfo) as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1 FROM fencerow.gate_arrivals")
        rows(
            pg,
            f"INSERT INTO fencerow.gate_arrivals (gate) SELECT 'key:' || n FROM generate_series(1, {MANY}) AS n",
        )
        (last,) = (row["last"] for row in rows(pg, "SELECT max(id) AS last FROM fencerow.gate_arrivals"))
        rows(pg, "DELETE FROM fencerow.gate_arrivals")

        walked, read = (touched(nodes(pg, "turns_wanted", {"after": after})) for after in (0, int(str(last))))

    assert read < 20 < walked
