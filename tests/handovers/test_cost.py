"""What a take costs does not grow with the lines that wait."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.ids import new_id
from fencerow.db.queries import pyformat
from fencerow.db.run import Param
from tests.core.store.stage import rows, table
from tests.core.store.test_plans import flat
from tests.handovers.stage import receiver
from tests.kit.jobs import AnyEngine

FEW, MANY = 300, 3_000
FILL = (
    "INSERT INTO {table} (job_id, receiver, key, hold_s, name, lined_at, state, attempt, result, ended_at, held_until) "
    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {lines}) "
    "SELECT {job_id}, '{to}', 'c' || n, 600, 'a', {now}, 'succeeded', 1, '1', {now}, {now} + {hold} FROM n"
)


def fill(engine: AnyEngine, to: str, lines: int) -> None:
    """So many lines, in each an end that nobody has taken."""
    postgres = engine.dialect == "postgres"
    now = "fencerow.now()" if postgres else str(rows(engine, "SELECT unixepoch() * 1000000 AS now")[0]["now"])
    job_id = "gen_random_uuid()" if postgres else "lower(hex(randomblob(16)))"
    hold = "interval '600 s'" if postgres else "600000000"
    text = FILL.format(
        table=table(engine, "handovers"), lines=lines, job_id=job_id, to=to, now=now, hold=hold
    )
    rows(engine, text)
    rows(engine, f"ANALYZE {table(engine, 'handovers')}")


def cost(engine: AnyEngine, to: str) -> int:
    """What one take touches: pages on PostgreSQL, steps of the machine on SQLite."""
    (text,) = engine.queries["take_handovers"].statements
    params: dict[str, Param] = {
        "receiver": to,
        "holder": new_id(),
        "lease_s": 60.0,
        "taken_by": "me",
        "limit": 1,
        "after": "c2",
        "beside": 100,
    }
    with engine.session() as session:
        connection: Any = session.connection
        if engine.dialect == "postgres":
            explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + pyformat(text)
            plan = flat(connection.execute(explain, params).fetchone()[0][0]["Plan"])
            return int(plan[0]["Shared Hit Blocks"]) + int(plan[0]["Shared Read Blocks"])
        steps = [0]

        def counted() -> int:
            steps[0] += 1
            return 0

        connection.set_progress_handler(counted, 100)
        connection.execute(text, params).fetchall()
        connection.set_progress_handler(None, 0)
        return steps[0]


def test_a_take_looks_at_some_lines_however_many_there_are(engine: AnyEngine) -> None:
    fill(engine, "few", FEW)
    fill(engine, "many", MANY)

    assert cost(engine, "many") < 2 * cost(engine, "few")


def test_of_many_lines_each_has_its_turn(engine: AnyEngine) -> None:
    """Also where those that were served have an end again at once."""
    fill(engine, "bot", FEW)
    bot, again = receiver(engine), FILL.split("WITH", maxsplit=1)[0]
    columns = "receiver, key, hold_s, name, lined_at, state, attempt, result, ended_at, held_until"
    job_id = "gen_random_uuid()" if engine.dialect == "postgres" else "lower(hex(randomblob(16)))"
    seen: set[str] = set()
    for _ in range(2 * FEW // 25):
        taken = bot.take(25)
        seen |= {each.key for each in taken}
        served = ", ".join(f"'{each.job_id}'" for each in taken)
        rows(
            engine,
            f"{again.format(table=table(engine, 'handovers'))} SELECT {job_id}, {columns} "
            f"FROM {table(engine, 'handovers')} WHERE job_id IN ({served})",
        )
        now = "fencerow.now()" if engine.dialect == "postgres" else "1"
        rows(
            engine,
            f"UPDATE {table(engine, 'handovers')} SET confirmed_at = {now}, result = NULL WHERE job_id IN ({served})",
        )

    assert len(seen) == FEW
