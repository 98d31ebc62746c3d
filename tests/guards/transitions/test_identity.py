"""A move is for one row: an id that several rows may have is refused, before anything is sent to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import WrongTable
from fencerow.guards.transitions import Lease, Move, Transitions
from tests.guards.transitions.tables import AtEngine, create, sql
from tests.kit.jobs import AnyEngine

COLUMNS = "tenant {text}, id {text}, status {text}, fence {whole} DEFAULT 0, since {instant}"
LEASE = Lease(lease_s=60, since="since", fence="fence")


def declared(engine: AnyEngine, table: str) -> Transitions:
    moves = [Move("claim", "queued", "running", lease=LEASE), Move("succeed", "running", "succeeded")]
    return Transitions(
        AtEngine(engine),
        table=table,
        column="status",
        states=["queued", "running", "succeeded"],
        moves=moves,
    )


def shared(engine: AnyEngine, keys: str = "", *further: str) -> str:
    """A table in which two tenants have a row of the same id."""
    table = create(engine, f"CREATE TABLE {{name}} ({COLUMNS}{keys})", "shared")
    for text in further:
        sql(engine, text.format(table=table))
    return table


NOT_UNIQUE: list[tuple[str, ...]] = [
    (", PRIMARY KEY (tenant, id)",),
    ("",),
    ("", "CREATE UNIQUE INDEX of_the_open ON {table} (id) WHERE status = 'open'"),
    ("", "CREATE UNIQUE INDEX of_both ON {table} (id, tenant)"),
    ("", "CREATE UNIQUE INDEX of_an_expression ON {table} ((id || tenant))"),
    ("", "CREATE INDEX of_many ON {table} (id)"),
    (", UNIQUE (tenant)",),
]


@pytest.mark.parametrize("made", NOT_UNIQUE)
def test_an_id_that_several_rows_may_have_is_refused(engine: AnyEngine, made: tuple[str, ...]) -> None:
    table = shared(engine, *made)

    with pytest.raises(WrongTable, match=r"(?s)'id'.*not unique by itself.*add a unique index"):
        declared(engine, table).check()


def test_it_is_refused_before_the_first_use_and_nothing_is_moved(engine: AnyEngine) -> None:
    table = shared(engine, ", PRIMARY KEY (tenant, id)")
    for tenant in ("ann", "bob"):
        sql(engine, f"INSERT INTO {table} (tenant, id, status) VALUES ('{tenant}', '1', 'queued')")
    rows = declared(engine, table)
    calls: list[Callable[[], Any]] = [
        lambda: rows.move("claim", "1"),
        lambda: rows.take("claim", 1),
        lambda: rows.renew("claim", "1", fence=1),
        lambda: rows.move_or_why("claim", "1"),
        lambda: rows.read("1"),
    ]
    for call in calls:
        with pytest.raises(WrongTable, match="not unique by itself"):
            call()

    assert sql(engine, f"SELECT status, fence FROM {table}") == [("queued", 0)] * 2


UNIQUE: list[tuple[str, ...]] = [
    (", PRIMARY KEY (id)",),
    (", PRIMARY KEY (tenant, id), UNIQUE (id)",),
    ("", "CREATE UNIQUE INDEX of_one ON {table} (id)"),
]


@pytest.mark.parametrize("made", UNIQUE)
def test_an_id_of_one_row_is_taken(engine: AnyEngine, made: tuple[str, ...]) -> None:
    table = shared(engine, *made)
    sql(engine, f"INSERT INTO {table} (tenant, id, status) VALUES ('ann', '1', 'queued')")
    rows = declared(engine, table)

    rows.check()

    assert rows.move("claim", "1") is not None


@pytest.mark.parametrize(
    "end", ["id INTEGER PRIMARY KEY)", "id INT PRIMARY KEY)", "id PRIMARY KEY) WITHOUT ROWID"]
)
def test_primary_keys_of_sqlite(lite: SqliteEngine, end: str) -> None:
    sql(lite, f"CREATE TABLE own (tenant TEXT, status TEXT, fence INTEGER DEFAULT 0, since INTEGER, {end}")

    declared(lite, "own").check()
    declared(lite, "main.own").check()


def test_a_table_with_heirs_or_partitions(pg: PostgresEngine) -> None:
    """A unique index is one table's: an heir may have the same id, and a partition too where the key says more."""
    table = shared(pg, ", PRIMARY KEY (id)")
    sql(pg, f"CREATE TABLE fencerow.heir () INHERITS ({table})")
    with pytest.raises(WrongTable, match="not unique by itself"):
        declared(pg, table).check()

    columns = "id text, status text, fence bigint, since timestamptz"
    sql(
        pg,
        f"CREATE TABLE fencerow.parted ({columns}, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
    )
    with pytest.raises(WrongTable, match="not unique by itself"):
        declared(pg, "fencerow.parted").check()

    sql(pg, f"CREATE TABLE fencerow.hashed ({columns}, PRIMARY KEY (id)) PARTITION BY HASH (id)")
    declared(pg, "fencerow.hashed").check()
