"""The declaration is held against the table: by the first use, by check(), and by what the table itself refuses."""

from __future__ import annotations

import sqlite3
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from fencerow import Database
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import WrongTable
from fencerow.guards.transitions import Lease, Move, Overdue, Transitions
from fencerow.testing.postgres import PostgresServer
from tests.guards.transitions.tables import (
    EXTRACTIONS,
    TYPES,
    AtEngine,
    connected,
    create,
    extractions,
    insert,
    sql,
    where,
)
from tests.kit.jobs import AnyEngine

REFUSED = (psycopg.errors.CheckViolation, sqlite3.IntegrityError)


def small(engine: AnyEngine, table: str, **changes: Any) -> Transitions:
    given: dict[str, Any] = {
        "table": table,
        "column": "status",
        "states": ["queued", "running"],
        "moves": [Move("start", "queued", "running")],
    }
    return Transitions(AtEngine(engine), **{**given, **changes})


def test_check_finds_nothing_wrong_with_what_fits(documents: Transitions) -> None:
    documents.check()


async def test_check_for_async_code(documents: Transitions) -> None:
    await documents.acheck()


def test_a_table_that_is_not_there_is_told_before_the_first_use(engine: AnyEngine) -> None:
    with pytest.raises(WrongTable, match="there is no table nowhere"):
        small(engine, "nowhere").move("start", "a")
    with pytest.raises(WrongTable, match=r"there is no table (main|fencerow)\.nowhere"):
        small(engine, "main.nowhere" if engine.dialect == "sqlite" else "fencerow.nowhere").check()


MISSING: list[tuple[str, dict[str, Any]]] = [
    ("no column 'state'", {"column": "state"}),
    ("no column 'key'", {"id": "key"}),
    ("no column 'done_at'", {"moves": [Move("start", "queued", "running", stamps="done_at")]}),
    (
        "no column 'fence'",
        {
            "moves": [
                Move("start", "queued", "running", lease=Lease(lease_s=1, since="started_at", fence="fence"))
            ]
        },
    ),
    ("no column 'seen_at'", {"overdue": [Overdue("queued", "seen_at", 60)]}),
    ("no column 'version'", {"version": "version"}),
    ("'boxes_status' is of type", {"version": "boxes_status"}),
    ("no table", {"history": "moves_made"}),
]


def test_a_missing_column_is_told_before_the_first_use(engine: AnyEngine, table: str) -> None:
    insert(engine, table, "a")
    for told, changes in MISSING:
        with pytest.raises(WrongTable, match=told):
            small(engine, table, **changes).move("start", "a")
    assert sql(engine, f"SELECT status FROM {table}") == [("queued",)]


def test_a_type_that_keeps_no_instants_is_told(pg: PostgresEngine) -> None:
    table = create(pg)
    with pytest.raises(WrongTable, match="type 'text'"):
        small(pg, table, moves=[Move("start", "queued", "running", stamps="tenant")]).check()


def test_ages_of_different_kinds_are_told(engine: AnyEngine, table: str) -> None:
    sql(engine, f"ALTER TABLE {table} ADD COLUMN seen_at double precision")
    with pytest.raises(WrongTable, match="in different ways"):
        small(engine, table, overdue=[Overdue("queued", ("seen_at", "submitted_at"), 60)]).check()


def test_check_tells_what_only_the_database_knows(engine: AnyEngine, table: str) -> None:
    wrong = [Move("start", "queued", "running", where="tenant = nobody_knows_me")]
    with pytest.raises(WrongTable, match=r"(?s)would refuse move 'start'.*nobody_knows_me"):
        small(engine, table, moves=wrong).check()


def test_check_tells_a_missing_grant(pg: PostgresEngine) -> None:
    table = create(pg)
    sql(pg, f"REVOKE UPDATE ON {table} FROM CURRENT_USER")
    with pytest.raises(WrongTable, match=r"(?s)would refuse move 'start'.*permission denied"):
        small(pg, table).check()


def test_what_a_role_needs_that_only_moves_rows(
    pg: PostgresEngine, server: PostgresServer, request: pytest.FixtureRequest
) -> None:
    """As the guide says it."""
    if request.config.getoption("--through"):
        pytest.skip("the pooler knows the role of the tests alone")
    table = create(pg)
    insert(pg, table, "a")
    database = conninfo_to_dict(pg.conninfo)["dbname"]
    with server.connect(str(database)) as super_user:
        super_user.execute("DROP ROLE IF EXISTS mover")
        super_user.execute("CREATE ROLE mover LOGIN")
    try:
        sql(pg, "GRANT USAGE ON SCHEMA fencerow TO mover")
        sql(pg, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fencerow TO mover")
        sql(pg, "GRANT SELECT ON fencerow.schema_migrations TO mover")
        sql(pg, f"GRANT SELECT, UPDATE ON {table} TO mover")
        with Database(server.conninfo(str(database), "mover")) as place:
            documents = extractions(place, table)
            documents.check()
            assert documents.move("claim", "a") is not None
            assert documents.take("claim") == []
    finally:
        with server.connect(str(database)) as super_user:
            super_user.execute("DROP OWNED BY mover; DROP ROLE mover")


def test_a_column_dropped_later_is_an_error_of_the_table(engine: AnyEngine) -> None:
    """Not of Fencerow's own tables, which are there."""
    table = create(
        engine, text="CREATE TABLE {name} (id {text} PRIMARY KEY, status {text}, n {whole})", name="narrow"
    )
    documents = small(engine, table, moves=[Move("start", "queued", "running", counts="n")])
    insert(engine, table, "a")
    assert documents.move("start", "a") is not None
    sql(engine, f"ALTER TABLE {table} DROP COLUMN n")

    if engine.dialect == "postgres":
        with pytest.raises(WrongTable, match="refuses the statement"):
            documents.move("start", "a")
    with pytest.raises(WrongTable, match="no column 'n'"):
        documents.check()


def test_names_are_quoted_so_any_case_will_do(engine: AnyEngine) -> None:
    schema = '"fencerow".' if engine.dialect == "postgres" else '"main".'
    sql(
        engine,
        f'CREATE TABLE {schema}"Order" '
        f'("Id" integer UNIQUE, "State" text, "group" {TYPES[engine.dialect]["instant"]})',
    )
    sql(engine, f"INSERT INTO {schema}\"Order\" VALUES (1, 'it''s new', NULL)")
    orders = Transitions(
        AtEngine(engine),
        table="fencerow.Order" if engine.dialect == "postgres" else "main.Order",
        id="Id",
        column="State",
        states=["it's new", "50% done :x"],
        moves=[Move("start", "it's new", "50% done :x", stamps="group")],
        overdue=[Overdue("50% done :x", "group", 60)],
    )
    orders.check()

    row = orders.move("start", 1)

    assert row is not None and row["State"] == "50% done :x" and row["group"] is not None
    assert orders.find_stuck() == []


def test_states_may_be_an_enum_and_ids_uuids(pg: PostgresEngine) -> None:
    sql(pg, "CREATE TYPE fencerow.progress AS ENUM ('queued', 'running')")
    sql(pg, "CREATE TABLE fencerow.typed (id uuid PRIMARY KEY, status fencerow.progress, n smallint)")
    row_id = uuid4()
    sql(pg, "INSERT INTO fencerow.typed VALUES (:id, 'queued', NULL)", id=row_id)
    typed = small(pg, "fencerow.typed", moves=[Move("start", "queued", "running", counts="n")])
    typed.check()
    sql(pg, typed.constraint_sql())
    sql(pg, typed.trigger_sql())

    row = typed.move("start", row_id)

    assert row == {"id": row_id, "status": "running", "n": 1}
    assert typed.move("start", str(row_id)) is None
    with pytest.raises(WrongTable):
        typed.move("start", 17)


# --- what the table itself refuses --------------------------------------------------------------


def test_the_constraint_refuses_an_unknown_state(engine: AnyEngine) -> None:
    text = EXTRACTIONS
    plain = extractions(AtEngine(engine), where(engine))
    if engine.dialect == "sqlite":
        text = text.rstrip().removesuffix(")") + f", {plain.constraint_sql()})"
    table = create(engine, text=text)
    if engine.dialect == "postgres":
        sql(engine, plain.constraint_sql())
        sql(engine, plain.constraint_sql())  # may be repeated
    insert(engine, table, "a")

    for column in ("status", "boxes_status"):
        with pytest.raises(REFUSED), connected(engine) as connection:
            connection.execute(f"UPDATE {table} SET {column} = 'gone'")


@pytest.fixture
def guarded(engine: AnyEngine) -> str:
    """The table with a version and the trigger."""
    text = EXTRACTIONS.replace("tenant {text}", "tenant {text},\n    version {whole} DEFAULT 0")
    table = create(engine, text=text)
    for _ in range(2):  # the second replaces the first
        with engine.session() as session:
            written = extractions(AtEngine(engine), table, version="version").trigger_sql()
            if engine.dialect == "sqlite":
                drop, _, make = written.partition(";\n")
                session.connection.execute(drop)
                session.connection.execute(make)
            else:
                session.connection.execute(written)
    insert(engine, table, "a")
    return table


def test_the_trigger_lets_every_declared_move_pass(engine: AnyEngine, guarded: str) -> None:
    documents = extractions(AtEngine(engine), guarded, version="version")
    boxes = documents.sub("boxes")

    assert documents.move("claim", "a") is not None
    assert documents.move("requeue", "a", fence=1) is not None
    assert documents.move("claim", "a") is not None
    assert documents.renew("claim", "a", fence=2) is not None
    assert documents.move("succeed_with_boxes", "a", fence=2) is not None
    assert boxes.move("claim", "a") is not None
    assert boxes.move("requeue", "a", fence=1) is not None
    (row,) = boxes.take("claim")
    done = boxes.move("succeed", "a", fence=row["boxes_fence"])

    assert done is not None and done["version"] == 8
    sql(engine, f"UPDATE {guarded} SET tenant = 'mine', result = NULL")  # of no concern to it


ROUND_THE_MOVES = [
    "status = 'succeeded'",
    "status = 'succeeded', version = version + 1",  # no declared pair
    "status = 'cancelled'",  # a declared pair, but not by a move
    "attempts = attempts + 1",
    "attempts = 5, version = version + 1",
    "status = 'running', version = version + 1",  # a claim that makes no fence
    "status = 'running', version = version + 1, attempts = attempts + 1",  # and one without a lease
    "status = 'running', version = version + 1, attempts = attempts + 2, started_at = submitted_at",
    "boxes_status = 'pending', version = version + 1",  # not within its main states
    "boxes_fence = 1, version = version + 1",
    "version = 7",
    "version = NULL",
]


def test_the_trigger_refuses_what_goes_round_the_moves(engine: AnyEngine, guarded: str) -> None:
    sql(
        engine,
        f"UPDATE {guarded} SET submitted_at = {'fencerow.now()' if engine.dialect == 'postgres' else 1}",
    )

    for write in ROUND_THE_MOVES:
        with pytest.raises(REFUSED, match="goes round"), connected(engine) as connection:
            connection.execute(f"UPDATE {guarded} SET {write}")


def test_a_zombie_that_writes_by_hand_is_refused(engine: AnyEngine, guarded: str) -> None:
    """It loaded the row, worked, and stores the object: a legal pair of states, but no move."""
    documents = extractions(AtEngine(engine), guarded, version="version")
    documents.move("claim", "a")

    with pytest.raises(REFUSED), connected(engine) as connection:
        connection.execute(f"UPDATE {guarded} SET status = 'succeeded', result = 'late' WHERE id = 'a'")
    assert documents.move("succeed", "a", fence=1) is not None


def test_a_lent_transaction_may_have_made_the_table(pg: PostgresEngine) -> None:
    """As in a test or a migration of the user's: the look is on the same connection."""
    with psycopg.connect(pg.conninfo) as mine:
        mine.execute("CREATE TABLE fencerow.fresh (id text PRIMARY KEY, status text)")
        mine.execute("INSERT INTO fencerow.fresh VALUES ('a', 'queued')")

        assert small(pg, "fencerow.fresh").move("start", "a", connection=mine) is not None
        mine.rollback()
