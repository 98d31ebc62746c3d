"""Planted races are found in every style on both engines, with the order; their mended twins are complete and clean."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import aiosqlite
import asyncpg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from fencerow_proof import Answer, Exploration, Played, Violation, explore

Script = Generator[Any, Answer, Any]

TABLES = """
CREATE TABLE account (id integer PRIMARY KEY, balance integer NOT NULL);
CREATE TABLE task (id integer PRIMARY KEY, state text NOT NULL, owner text);
CREATE TABLE seat (number integer NOT NULL, guest text NOT NULL);
CREATE TABLE unique_seat (number integer PRIMARY KEY, guest text NOT NULL);
"""
SETUP = """
DELETE FROM account; INSERT INTO account VALUES (1, 100);
DELETE FROM task; INSERT INTO task VALUES (1, 'queued', NULL), (2, 'queued', NULL);
DELETE FROM seat; DELETE FROM unique_seat;
"""
READ = "SELECT balance FROM account WHERE id = 1"
ADD = "UPDATE account SET balance = balance + 10 WHERE id = 1"
CHECK = "SELECT 1 FROM seat WHERE number = 7"


@dataclass(frozen=True)
class Style:
    """One way to write an actor that reads a balance, adds to it and writes it."""

    engine: str
    wrong: Callable[..., Any]
    right: Callable[..., Any]
    connect: Callable[..., Any] | None = None


# --- the same mistake in every style ---------------------------------------------------------------


def pg_script() -> Script:
    yield "BEGIN"
    balance = (yield READ).rows[0][0]
    yield "UPDATE account SET balance = %s WHERE id = 1", (balance + 10,)
    yield "COMMIT"


def pg_script_right() -> Script:
    yield "BEGIN"
    balance = (yield READ + " FOR UPDATE").rows[0][0]
    yield "UPDATE account SET balance = %s WHERE id = 1", (balance + 10,)
    yield "COMMIT"


def psycopg_plain(connection: Any) -> None:
    balance = connection.execute(READ).fetchone()[0]
    connection.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + 10])


def psycopg_plain_right(connection: Any) -> None:
    with connection.transaction():
        balance = connection.execute(READ + " FOR UPDATE").fetchone()[0]
        connection.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + 10])


async def psycopg_async(connection: Any) -> None:
    balance = (await (await connection.execute(READ)).fetchone())[0]
    await connection.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + 10])


async def psycopg_async_right(connection: Any) -> None:
    await connection.execute(ADD)


async def asyncpg_actor(connection: Any) -> None:
    async with connection.transaction():
        balance = await connection.fetchval("SELECT balance FROM account WHERE id = $1", 1)
        await connection.execute("UPDATE account SET balance = $1 WHERE id = 1", balance + 10)


async def asyncpg_right(connection: Any) -> None:
    async with connection.transaction():
        balance = await connection.fetchval("SELECT balance FROM account WHERE id = $1 FOR UPDATE", 1)
        await connection.execute("UPDATE account SET balance = $1 WHERE id = 1", balance + 10)


def alchemy(connection: Any) -> None:
    balance = connection.scalar(sqlalchemy.text(READ))
    connection.execute(sqlalchemy.text("UPDATE account SET balance = :it WHERE id = 1"), {"it": balance + 10})


def alchemy_right(connection: Any) -> None:
    connection.execute(sqlalchemy.text(ADD))


async def alchemy_async(connection: Any) -> None:
    balance = await connection.scalar(sqlalchemy.text(READ))
    await connection.execute(
        sqlalchemy.text("UPDATE account SET balance = :it WHERE id = 1"), {"it": balance + 10}
    )


async def alchemy_async_right(connection: Any) -> None:
    await connection.execute(sqlalchemy.text(ADD))


def lite_script() -> Script:
    balance = (yield READ).rows[0][0]
    yield "UPDATE account SET balance = ? WHERE id = 1", (balance + 10,)


def lite_script_right() -> Script:
    yield "BEGIN IMMEDIATE"
    balance = (yield READ).rows[0][0]
    yield "UPDATE account SET balance = ? WHERE id = 1", (balance + 10,)
    yield "COMMIT"


def lite_plain(connection: Any) -> None:
    balance = connection.execute(READ).fetchone()[0]
    with connection:
        connection.execute("UPDATE account SET balance = ? WHERE id = 1", [balance + 10])


def lite_plain_right(connection: Any) -> None:
    connection.execute("BEGIN IMMEDIATE")
    lite_plain(connection)


async def lite_async(connection: Any) -> None:
    async with connection.execute(READ) as cursor:
        balance = (await cursor.fetchone())[0]
    await connection.execute("UPDATE account SET balance = ? WHERE id = 1", [balance + 10])


async def lite_async_right(connection: Any) -> None:
    await connection.execute(ADD)


def pg_alchemy(url: str) -> Any:
    return sqlalchemy.create_engine(
        url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sqlalchemy.NullPool
    ).connect()


async def pg_alchemy_async(url: str) -> Any:
    engine = create_async_engine(
        url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sqlalchemy.NullPool
    )
    return await engine.connect()


def lite_alchemy(path: str, factory: Any) -> Any:
    engine = sqlalchemy.create_engine(
        f"sqlite:///{path}", connect_args={"factory": factory}, poolclass=sqlalchemy.NullPool
    )
    return engine.connect()


STYLES = {
    "generator": Style("pg", pg_script, pg_script_right),
    "psycopg": Style("pg", psycopg_plain, psycopg_plain_right),
    "psycopg-async": Style("pg", psycopg_async, psycopg_async_right),
    "asyncpg": Style("pg", asyncpg_actor, asyncpg_right, asyncpg.connect),
    "sqlalchemy": Style("pg", alchemy, alchemy_right, pg_alchemy),
    "sqlalchemy-async": Style("pg", alchemy_async, alchemy_async_right, pg_alchemy_async),
    "sqlite-generator": Style("lite", lite_script, lite_script_right),
    "sqlite3": Style("lite", lite_plain, lite_plain_right),
    "aiosqlite": Style("lite", lite_async, lite_async_right, aiosqlite.connect),
    "sqlite-sqlalchemy": Style("lite", alchemy, alchemy_right, lite_alchemy),
}


@pytest.fixture(params=STYLES)
def style(request: pytest.FixtureRequest) -> Style:
    return STYLES[request.param]


@pytest.fixture
def url(request: pytest.FixtureRequest, style: Style) -> str:
    found: str = request.getfixturevalue(f"{style.engine}_url")
    return found


def both_added(played: Played) -> None:
    (balance,) = played.rows(READ)[0]
    assert balance == 120, f"an update was lost: {balance}"


def test_a_lost_update_is_found_in_every_style_and_told_statement_by_statement(
    style: Style, url: str
) -> None:
    with pytest.raises(Violation) as caught:
        race(url, style.wrong, check=both_added, connect=style.connect)

    text = str(caught.value)
    assert "an update was lost: 110" in text
    for line in (
        "a: SELECT balance FROM account",
        "b: SELECT balance FROM account",
        "a: UPDATE account SET",
        "a: COMMIT",
    ):
        assert line in text or (line == "a: COMMIT" and style.wrong is lite_script)
    assert "(100)" in text or "(100,)" in text, "what was read is told"
    assert f"order={caught.value.order!r}" in text
    with pytest.raises(Violation) as again:
        race(url, style.wrong, check=both_added, connect=style.connect, order=caught.value.order)
    assert again.value.lines == caught.value.lines


def test_the_mended_twin_is_played_in_all_its_orders(style: Style, url: str) -> None:
    told = race(url, style.right, check=both_added, connect=style.connect)

    assert told.complete
    assert told.orders > 1
    assert f"all {told.orders} orders" in str(told)


# --- two claimers ----------------------------------------------------------------------------------

CLAIM = """
UPDATE task SET state = 'running', owner = '{}'
WHERE id IN (SELECT id FROM task WHERE state = 'queued' ORDER BY id LIMIT 1{}) RETURNING id
"""


def claimer(name: str, lock: str) -> Callable[[], Script]:
    def claim() -> Script:
        return [row[0] for row in (yield CLAIM.format(name, lock)).rows]

    return claim


def no_task_twice(played: Played) -> None:
    claimed = [task for tasks in played.results.values() for task in tasks]
    assert len(claimed) == len(set(claimed)), f"claimed twice: {claimed}"


def test_two_claimers_with_a_subselect_take_one_task_on_postgresql(pg_url: str) -> None:
    """Each is one statement: only one that is held between its snapshot and its change shows it."""
    racing = {name: claimer(name, "") for name in "ab"}

    with pytest.raises(Violation, match="claimed twice") as caught:
        explore(pg_url, racing, tables=TABLES, setup=SETUP, check=no_task_twice)

    assert "held after its snapshot" in str(caught.value)
    blind = explore(pg_url, racing, setup=SETUP, check=no_task_twice, hold=False)
    assert blind.complete and blind.orders == 2, "whole statements in any order do not show it"


def test_claimers_that_skip_what_is_locked_never_do(pg_url: str) -> None:
    racing = {name: claimer(name, " FOR UPDATE SKIP LOCKED") for name in "ab"}

    told = explore(pg_url, racing, tables=TABLES, setup=SETUP, check=no_task_twice)

    assert told.complete and told.orders >= 6


def test_on_sqlite_one_statement_claims_safely_and_two_do_not(lite_url: str) -> None:
    def in_two() -> Script:
        found = (yield "SELECT id FROM task WHERE state = 'queued' ORDER BY id LIMIT 1").rows
        yield "UPDATE task SET state = 'running' WHERE id = ?", found[0]
        return [found[0][0]]

    with pytest.raises(Violation, match="claimed twice"):
        explore(lite_url, {"a": in_two, "b": in_two}, tables=TABLES, setup=SETUP, check=no_task_twice)
    racing = {name: claimer(name, "") for name in "ab"}
    assert explore(lite_url, racing, setup=SETUP, check=no_task_twice).complete


# --- check, then insert ----------------------------------------------------------------------------

ONE_GUEST = {"one guest per seat": "SELECT number, count(*) FROM seat GROUP BY number HAVING count(*) > 1"}
TAKE = "INSERT INTO unique_seat VALUES (7, 'somebody') ON CONFLICT DO NOTHING"


def unlocked(connection: Any) -> bool:
    if connection.execute(CHECK).fetchone() is not None:
        return False
    connection.execute("INSERT INTO seat VALUES (7, 'somebody')")
    return True


def guarded(connection: Any) -> bool:
    return bool(connection.execute(TAKE).rowcount == 1)


def locked_script() -> Script:
    yield "BEGIN"
    yield "SELECT pg_advisory_xact_lock(7)"
    if not (yield CHECK).rows:
        yield "INSERT INTO seat VALUES (7, 'somebody')"
    yield "COMMIT"


def one_winner(played: Played) -> None:
    assert sorted(played.results.values()) == [False, True]


@pytest.mark.parametrize("engine", ["pg", "lite"])
def test_a_check_before_an_insert_is_found_by_its_invariant(
    engine: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(f"{engine}_url")

    with pytest.raises(Violation) as caught:
        race(url, unlocked, invariants=ONE_GUEST)

    assert "invariant 'one guest per seat' does not hold: (7, 2)" in str(caught.value)
    assert race(url, guarded, tables="", check=one_winner).complete


def test_a_lock_before_the_check_mends_it(pg_url: str) -> None:
    assert race(pg_url, locked_script, invariants=ONE_GUEST).complete


def race(url: str, actor: Callable[..., Any], *, tables: str = "", **options: Any) -> Exploration:
    made = TABLES.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
    return explore(url, {"a": actor, "b": actor}, tables=tables or made, setup=SETUP, **options)
