"""The same with real processes that SIGKILL ends in the middle of an operation; and inside a migration."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.schema.migrate import apply_next, ledger, ledger_name, lock_number
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.crash import Point, crash, ending, points
from fencerow_proof.arena.race import Scenario
from tests.kit.forking import context
from tests.proof.crash import dying
from tests.proof.crash.cases import CASES
from tests.proof.race.bare import LEDGER, Bare
from tests.proof.race.people import nothing

SAMPLE = [
    ("submit", Point("committed")),
    ("resubmit", Point("after", 0)),
    ("submit_keyed", Point("after", 1)),
    ("submit_keyed", Point("after", 2)),
    ("submit_keyed, the key expired", Point("after", 3)),
    ("claim", Point("committed")),
    ("succeed", Point("before", 0)),
    ("succeed, the worker gone", Point("committed")),
    ("fail", Point("after", 0)),
    ("cancel of a queued job", Point("after", 1)),
    ("revive of a keyed job", Point("after", 2)),
    ("reclaim, the crash budget spent", Point("after", 0)),
]


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
@pytest.mark.parametrize(("name", "point"), SAMPLE, ids=str)
def test_a_killed_process_loses_nothing(
    name: str, point: Point, mode: str, arenas: Mapping[str, Any], race_server: PostgresServer
) -> None:
    arena = arenas[mode]
    (case,) = [case for case in CASES if case.name == name]

    def killed(_: Any, at: Point) -> None:
        child = context.Process(
            target=dying.main, args=(arena.url, case.name, at, arena.offset_us), daemon=True
        )
        child.start()
        child.join(60)
        assert child.exitcode == -signal.SIGKILL, "it ended by itself, or not at all"
        if mode == "plain":
            until_nobody(race_server, "race_plain")

    crash(arena, case, point, killed)


def until_nobody(server: PostgresServer, database: str) -> None:
    """Wait until the server has noticed that the child is gone."""
    with server.connect() as connection:
        while connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND application_name = 'fencerow'", [database]
        ).fetchone():
            pass


# Migrations: whole steps only, and whoever comes next goes on.

FIRST_STEP = 6  # lock, ledger?, ledger made, read, step, note: at most
GOES_ON_TO = (
    3  # the migration that is broken off, and two that follow: all of them would cost seconds for each point
)


def test_a_migration_broken_anywhere_goes_on(race_server: PostgresServer) -> None:
    url = race_server.create_role_and_schema(role="racer", database="crash_migrate")
    arena = Bare(race_server, "crash_migrate", store.postgres_queries())
    lock = lock_number(LEDGER)
    step = apply_next(store.known_migrations("postgres"), ledger=LEDGER, lock=lock, actor=None)
    try:
        for point in points(FIRST_STEP - 1, alone=False):
            arena.fresh(Scenario("migrate", nothing, [], lambda story: None))
            arena.break_at(step, point)
            engine = PostgresEngine(url, store.postgres_queries())
            store.migrate(engine, to=GOES_ON_TO)
            applied = engine.run(ledger(ledger_name(engine)))
            engine.close()
            assert [row.version for row in applied] == [1, 2, GOES_ON_TO]
    finally:
        arena.close()
        race_server.drop_database("crash_migrate")


def test_a_migration_of_a_file_broken_anywhere_goes_on(tmp_path: Path) -> None:
    class Ended(Exception):
        pass

    def end() -> Any:
        raise Ended

    for number, point in enumerate(points(FIRST_STEP - 1, alone=False)):
        engine = SqliteEngine(tmp_path / f"{number}.db", store.sqlite_queries())
        name = ledger_name(engine)
        step = apply_next(store.known_migrations("sqlite"), ledger=name, lock=lock_number(name), actor=None)
        if point.when == "committed":
            engine.run(step)
        else:
            with pytest.raises(Ended):
                engine.run(ending(step, point, end))
        store.migrate(engine)
        assert store.check_schema(engine)
        engine.close()
