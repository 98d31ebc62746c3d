"""A source is one source, whatever its column is, whichever driver sends it, and however its table is spelled."""

from __future__ import annotations

import uuid
from typing import Any

import asyncpg
import psycopg
import pytest

from fencerow import InvalidInput
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.guards.replace import forget_source, replace_for
from fencerow.guards.replace.deciding import Found
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE
from tests.guards.places import At
from tests.guards.replace.test_replace import chunks_table
from tests.kit.jobs import AnyEngine

NUMBER = uuid.UUID("4212cacf-e05c-4750-b992-ce7139ae13b4")
SAME = [
    ("uuid", [NUMBER, str(NUMBER), str(NUMBER).upper()]),
    ("integer", [7, "7"]),
    ("bigint", [7, "7"]),
    ("text", [7, "7"]),
    ("varchar(40)", [NUMBER, str(NUMBER)]),
]


def made(engine: AnyEngine, kind: str) -> str:
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {chunks_table(engine)} (source_id {kind}, n bigint)")
    return chunks_table(engine)


def count(engine: AnyEngine, table: str) -> int:
    with engine.session() as session:
        found = session.connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert found is not None
        return int(found[0])


def put(engine: AnyEngine, table: str, source: object, content: str, **row: Any) -> Found:
    given: dict[str, Any] = {
        "table": table,
        "source_column": "source_id",
        "source": source,
        "content_hash": content,
    }
    with replace_for(At(engine), **given, wait_s=0) as replacing:
        if replacing.needed:
            assert replacing.insert([{"n": 1, **row}])
        return replacing.found


@pytest.mark.parametrize(("kind", "spellings"), SAME, ids=[kind for kind, _ in SAME])
def test_the_column_decides_what_a_source_is(engine: AnyEngine, kind: str, spellings: list[object]) -> None:
    if engine.dialect == "sqlite":
        spellings = [each for each in spellings if str(each) == str(spellings[0])]
    table = made(engine, kind)

    found = [put(engine, table, each, "a") for each in spellings]

    assert found == [Found.NEEDED] + [Found.UNCHANGED] * (len(spellings) - 1)
    assert [put(engine, table, each, str(number)) for number, each in enumerate(spellings)] == (
        [Found.NEEDED] * len(spellings)
    )
    assert count(engine, table) == 1
    assert put(engine, table, spellings[0], "c", source_id=str(spellings[0])) is Found.NEEDED


@pytest.mark.parametrize(("kind", "spellings"), SAME, ids=[kind for kind, _ in SAME])
async def test_it_does_so_on_a_connection_of_asyncpg(
    pg: PostgresEngine, kind: str, spellings: list[object]
) -> None:
    table = made(pg, kind)
    connection = await asyncpg.connect(pg.conninfo)
    try:
        for number, source in enumerate(spellings):
            given: dict[str, Any] = {"table": table, "source_column": "source_id", "source": source}
            async with (
                replace_for(At(pg), **given, content_hash=str(number), wait_s=0) as replacing,
                connection.transaction(),
            ):
                assert await replacing.ainsert([{"n": 1}], connection=connection)
    finally:
        await connection.close()
    assert count(pg, table) == 1


def test_a_source_that_its_column_cannot_hold_is_refused(pg: AnyEngine) -> None:
    table = made(pg, "uuid")
    with pytest.raises(InvalidInput, match="does not fit into its column"):
        put(pg, table, "no uuid", "a")


@pytest.fixture
def two_names(engine: AnyEngine, server: PostgresServer) -> tuple[str, str]:
    """One table, as one may name it, and by its one name."""
    table = made(engine, "text")
    if isinstance(engine, SqliteEngine):
        return "main.CHUNKS", table
    database = str(psycopg.conninfo.conninfo_to_dict(engine.conninfo)["dbname"])
    with server.connect(database) as owner:  # the search path begins with the schema of the role's own name
        owner.execute(f"CREATE SCHEMA {ROLE} AUTHORIZATION {ROLE}".encode())
    with engine.session() as session:
        session.connection.execute(f"ALTER TABLE {table} SET SCHEMA {ROLE}")
    return f"{ROLE}.chunks", "chunks"


def test_two_spellings_of_a_table_are_one_source(engine: AnyEngine, two_names: tuple[str, str]) -> None:
    long, short = two_names
    assert put(engine, long, "faq", "a") is Found.NEEDED
    assert put(engine, short, "faq", "a") is Found.UNCHANGED
    assert put(engine, long, "faq", "a") is Found.UNCHANGED
    assert forget_source(At(engine), table=long, source="faq")
    assert not forget_source(At(engine), table=short, source="faq")


def test_what_was_noted_under_another_spelling_is_still_known(
    engine: AnyEngine, two_names: tuple[str, str]
) -> None:
    """As a release before this one noted it."""
    long, short = two_names
    assert put(engine, short, "faq", "a") is Found.NEEDED
    sources = "fencerow.sources" if engine.dialect == "postgres" else "fencerow_sources"
    with engine.session() as session:
        session.connection.execute(f"UPDATE {sources} SET target = '{long}'")

    assert put(engine, long, "faq", "a") is Found.UNCHANGED
    assert put(engine, short, "faq", "a") is Found.UNCHANGED
