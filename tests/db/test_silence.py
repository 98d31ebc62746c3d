"""How long each transaction may be silent before PostgreSQL ends it; tests/events/test_frozen.py has what follows."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.db import postgres_session
from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation, Steps, execute_composed
from fencerow.errors import Unavailable
from fencerow.migrations.direct import Code, PostgresDirect, Raw

SETTING = "SELECT current_setting('idle_in_transaction_session_timeout') AS bound"


def asking(engine: PostgresEngine) -> Operation[str]:
    query = engine.queries.composed("ask", SETTING)

    def steps() -> Steps[str]:
        return str((yield from execute_composed(query, {}))[0]["bound"])

    return Operation("ask", steps)


async def test_our_own_are_bounded_and_a_users_is_as_it_was_asked_for(pg: PostgresEngine) -> None:
    assert (pg.run(asking(pg)), await pg.arun(asking(pg))) == ("10s", "10s")
    for idle_s, bound in ((None, "0"), (65.0, "65s")):
        with pg.session(idle_s=idle_s) as session:
            assert session.run(asking(pg)) == bound
        async with pg.asession(idle_s=idle_s) as asession:
            assert await asession.arun(asking(pg)) == bound

    with pg.session() as session:
        assert session.run(asking(pg)) == "0", "it ended with the transaction that it was for"


def test_a_step_of_a_migration_is_bounded_but_for_the_users_function(pg: PostgresEngine) -> None:
    seen: list[str] = []

    def note(connection: Any) -> None:
        seen.append(connection.execute(SETTING).fetchone()[0])

    def steps() -> Steps[None]:
        yield Raw("raw", {}, store.postgres_queries().composed("raw", "SELECT 1"))
        note(direct.connection)
        yield Code("code", {}, function=note)
        note(direct.connection)

    direct = PostgresDirect(pg.conninfo, store.postgres_queries(), connect_timeout_s=10.0)
    try:
        direct.run(Operation("step", steps))
    finally:
        direct.close()
    assert seen == ["1min", "0", "1min"]


def silent(engine: Engine, *, repeatable: bool) -> Operation[int]:
    """It falls silent in its first run, until the server has had enough."""
    runs: list[int] = []
    query = engine.queries.composed("wait", "SELECT pg_backend_pid() AS pid")

    def steps() -> Steps[int]:
        runs.append(1)
        (row,) = yield from execute_composed(query, {})
        if len(runs) == 1:
            until_ended(engine, row["pid"])
        yield from execute_composed(query, {})
        return len(runs)

    return Operation("silent", steps, repeatable=repeatable)


def until_ended(engine: Engine, pid: int) -> None:
    """Until this backend is gone."""
    query = engine.queries.composed("look", "SELECT count(*) AS n FROM pg_stat_activity WHERE pid = :pid")

    def steps() -> Steps[int]:
        return int((yield from execute_composed(query, {"pid": pid}))[0]["n"])

    while engine.run(Operation("look", steps)):
        pass


def test_one_that_was_ended_begins_anew_or_stored_nothing(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = postgres_session.BEGIN.replace(b"10000", b"200")
    monkeypatch.setattr(postgres_session, "BEGIN", quick)

    assert pg.run(silent(pg, repeatable=True)) == 2
    with pytest.raises(Unavailable):
        pg.run(silent(pg, repeatable=False))
