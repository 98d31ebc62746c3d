"""That the explorer sees what it must, says what it did not play, and tells what it cannot play."""

from __future__ import annotations

import itertools
import logging
import sqlite3
import threading
import time
from collections.abc import Generator
from typing import Any

import aiosqlite
import psycopg
import pytest

from fencerow_proof import Answer, Played, Violation, explore
from fencerow_proof.errors import ActorStuck, CannotExplore, NotRepeatable

Script = Generator[Any, Answer, Any]

TABLES = "CREATE TABLE IF NOT EXISTS item (id integer PRIMARY KEY, n integer NOT NULL)"
SETUP = "DELETE FROM item; INSERT INTO item VALUES (1, 0), (2, 0)"


@pytest.fixture(params=["pg", "lite"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


def step(number: int = 1) -> Script:
    yield f"UPDATE item SET n = n + 1 WHERE id = {number}"


def two_steps() -> Script:
    yield from step(1)
    yield from step(2)


# --- what holds at every instant -------------------------------------------------------------------


def test_an_invariant_is_asked_after_every_transaction_not_only_at_the_end(url: str) -> None:
    def broken_for_a_moment() -> Script:
        yield "UPDATE item SET n = -1 WHERE id = 1"
        yield "UPDATE item SET n = 1 WHERE id = 1"

    with pytest.raises(Violation, match=r"invariant 'positive' does not hold: \(1,\)|\(1, -1\)") as caught:
        explore(
            url,
            {"a": broken_for_a_moment},
            tables=TABLES,
            setup=SETUP,
            invariants={"positive": "SELECT id, n FROM item WHERE n < 0"},
        )

    assert caught.value.order.endswith("a") and len(caught.value.lines) <= 2


def test_an_invariant_that_never_holds_is_found_in_the_first_order(url: str) -> None:
    with pytest.raises(Violation, match="'wrong' does not hold"):
        explore(url, {"a": step}, tables=TABLES, setup=SETUP, invariants={"wrong": "SELECT 1"})


def test_an_error_of_an_actor_is_a_violation_unless_it_is_expected(url: str) -> None:
    def insert() -> Script:
        yield "INSERT INTO item VALUES (7, 7)"
        return "won"

    def one_won(played: Played) -> None:
        assert sorted(played.results.values()) == ["won"] and len(played.errors) == 1

    errors = (psycopg.errors.UniqueViolation, sqlite3.IntegrityError)
    with pytest.raises(Violation, match=r"actor '\w' ended with (UniqueViolation|IntegrityError)"):
        explore(url, {"a": insert, "b": insert}, tables=TABLES, setup=SETUP)
    assert explore(url, {"a": insert, "b": insert}, setup=SETUP, expected=errors, check=one_won).complete


def test_an_error_can_be_handled_where_the_statement_was_yielded(url: str) -> None:
    def insert() -> Script:
        try:
            yield "INSERT INTO item VALUES (7, 7)"
        except (psycopg.errors.UniqueViolation, sqlite3.IntegrityError):
            return "lost"
        return "won"

    def one_each(played: Played) -> None:
        assert sorted(played.results.values()) == ["lost", "won"]

    assert explore(url, {"a": insert, "b": insert}, tables=TABLES, setup=SETUP, check=one_each).complete


# --- how much was played ---------------------------------------------------------------------------


def test_the_orders_are_counted(lite_url: str) -> None:
    three = explore(lite_url, {"a": two_steps, "b": two_steps, "c": step}, tables=TABLES, setup=SETUP)

    assert (three.orders, three.total, three.complete) == (30, 30, True), "5! / (2! 2! 1!)"


def test_a_sample_is_said_to_be_one_and_drawn_by_its_seed(
    lite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    racing = dict.fromkeys("abcd", two_steps)  # 8! / 2!^4 = 2520 orders

    told = explore(lite_url, racing, tables=TABLES, setup=SETUP, orders_max=40, seed=7)

    assert not told.complete and told.orders <= 40
    assert 1500 < told.total < 4000, "an estimate"
    assert "a sample, seed 7" in str(told)
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "40 of about" in record.message or "a sample" in record.message


def test_what_an_actor_leaves_open_is_undone(url: str) -> None:
    def leaves() -> Script:
        yield "BEGIN"
        yield from step()

    def untouched(played: Played) -> None:
        assert played.rows("SELECT n FROM item WHERE id = 1") == [(0,)]

    assert explore(url, {"a": leaves, "b": leaves}, tables=TABLES, setup=SETUP, check=untouched).complete


def test_nothing_is_left_running(url: str) -> None:
    before = set(threading.enumerate())

    explore(url, {"a": step, "b": two_steps}, tables=TABLES, setup=SETUP)
    with pytest.raises(Violation):
        explore(url, {"a": step, "b": step}, setup=SETUP, invariants={"wrong": "SELECT 1"})

    deadline = time.monotonic() + 90
    while {thread for thread in threading.enumerate() if thread.name.startswith("fencerow-")} - before:
        assert time.monotonic() < deadline, "threads of the explorer are still there"
        time.sleep(0.01)


# --- locks -----------------------------------------------------------------------------------------


def crossing(first: int, second: int) -> Any:
    def transfer() -> Script:
        yield "BEGIN"
        yield from step(first)
        yield from step(second)
        yield "COMMIT"

    return transfer


def test_a_deadlock_is_told_as_one_always_to_the_same_actor(pg_url: str) -> None:
    racing = {"a": crossing(1, 2), "b": crossing(2, 1)}

    with pytest.raises(Violation, match="actor 'b' ended with DeadlockDetected") as caught:
        explore(pg_url, racing, tables=TABLES, setup=SETUP, hold=False)

    assert "waits for b" in str(caught.value)
    assert explore(pg_url, {"a": crossing(1, 2), "b": crossing(1, 2)}, setup=SETUP, hold=False).complete
    told = explore(pg_url, racing, setup=SETUP, hold=False, expected=(psycopg.errors.DeadlockDetected,))
    assert told.complete


def test_code_that_retries_a_deadlock_comes_to_its_end_in_every_order(pg_url: str) -> None:
    def retrying(first: int, second: int) -> Any:
        def transfer(connection: psycopg.Connection[Any]) -> None:
            for _ in range(3):
                try:
                    with connection.transaction():
                        for number in (first, second):
                            connection.execute("UPDATE item SET n = n + 1 WHERE id = %s", [number])
                    return
                except psycopg.errors.DeadlockDetected:
                    continue
            raise AssertionError("no end after three tries")

        return transfer

    def both(played: Played) -> None:
        assert played.rows("SELECT sum(n) FROM item") == [(4,)]

    racing = {"a": retrying(1, 2), "b": retrying(2, 1)}
    assert explore(pg_url, racing, tables=TABLES, setup=SETUP, hold=False, check=both).complete


def test_a_table_that_is_locked_whole_delays_the_look_and_nothing_else(pg_url: str) -> None:
    def truncates() -> Script:
        yield "BEGIN"
        yield "TRUNCATE item"
        yield "INSERT INTO item VALUES (1, 5), (2, 5)"
        yield "COMMIT"

    told = explore(
        pg_url,
        {"a": truncates, "b": step},
        tables=TABLES,
        setup=SETUP,
        invariants={"two": "SELECT count(*) FROM item HAVING count(*) <> 2"},
    )

    assert told.complete


def test_serialization_failures_reach_the_actor(pg_url: str) -> None:
    def strict() -> Script:
        yield "BEGIN ISOLATION LEVEL SERIALIZABLE"
        n = (yield "SELECT sum(n) FROM item").rows[0][0]
        yield f"UPDATE item SET n = {n} + 1 WHERE id = 1"
        yield "COMMIT"

    with pytest.raises(Violation, match="SerializationFailure"):
        explore(pg_url, {"a": strict, "b": strict}, tables=TABLES, setup=SETUP)


def test_sqlite_refuses_a_reader_that_would_write_after_another_wrote(lite_url: str) -> None:
    def reads_then_writes() -> Script:
        yield "BEGIN"
        n = (yield "SELECT n FROM item WHERE id = 1").rows[0][0]
        yield f"UPDATE item SET n = {n} + 1 WHERE id = 1"
        yield "COMMIT"

    racing = {"a": reads_then_writes, "b": reads_then_writes}
    seen: set[tuple[str, str]] = set()

    def note(played: Played) -> None:
        seen.update(
            (type(error).__name__, getattr(error, "sqlite_errorname", "")) for error in played.errors.values()
        )
        (n,) = played.rows("SELECT n FROM item WHERE id = 1")[0]
        assert n == 2 - len(played.errors), "who was not refused has added"

    told = explore(
        lite_url,
        racing,
        tables=f"PRAGMA journal_mode = WAL; {TABLES}",
        setup=SETUP,
        expected=(sqlite3.OperationalError,),
        check=note,
    )

    assert told.complete
    assert {name for _, name in seen} == {"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"}


def test_sqlite_writers_wait_for_each_other_and_the_last_is_told_when_nobody_can_go(lite_url: str) -> None:
    def immediate() -> Script:
        yield "BEGIN IMMEDIATE"
        yield from step()
        yield "COMMIT"

    def never_ends() -> Script:
        yield "BEGIN IMMEDIATE"
        yield "PRAGMA busy_timeout = 60000"
        try:
            yield "SELECT 1"
        finally:
            yield "ROLLBACK"

    def both(played: Played) -> None:
        assert played.rows("SELECT n FROM item WHERE id = 1") == [(2,)]

    told = explore(lite_url, {"a": immediate, "b": immediate}, tables=TABLES, setup=SETUP, check=both)
    assert told.complete and told.orders >= 4
    assert explore(lite_url, {"a": immediate, "b": never_ends}, setup=SETUP).complete


# --- what cannot be played -------------------------------------------------------------------------


def test_an_actor_that_depends_on_chance_is_told(lite_url: str) -> None:
    numbers = itertools.count()

    def moody() -> Script:
        for _ in range(1 + next(numbers) % 3):
            yield from step()

    with pytest.raises(NotRepeatable, match="the same order had another result"):
        explore(lite_url, {"a": moody, "b": step}, tables=TABLES, setup=SETUP)


def test_an_order_of_another_race_is_told(lite_url: str) -> None:
    with pytest.raises(NotRepeatable, match="only a, b can"):
        explore(lite_url, {"a": step, "b": step}, tables=TABLES, setup=SETUP, order="c.a")


def test_an_actor_that_waits_for_something_else_is_named_with_its_place(url: str) -> None:
    never = threading.Event()

    def waits_for_a_thread(connection: Any) -> None:
        connection.execute("SELECT 1")
        never.wait(30)

    with pytest.raises(ActorStuck) as caught:
        explore(url, {"a": step, "slow": waits_for_a_thread}, tables=TABLES, setup=SETUP, patience_s=0.3)
    never.set()

    assert "actor 'slow' neither reached a statement nor ended within 0.3 s" in str(caught.value)
    assert "never.wait(30)" in caught.value.why


@pytest.mark.parametrize(
    ("actors", "told"),
    [
        ({}, "no actors were given"),
        ({"a.b": step}, "cannot name an actor"),
        ({"a": step()}, "actor 'a' is generator"),
        ({"a": "UPDATE item"}, "actor 'a' is str"),
    ],
)
def test_what_is_no_actor_is_told(lite_url: str, actors: Any, told: str) -> None:
    with pytest.raises(CannotExplore, match=told):
        explore(lite_url, actors)


def test_a_setup_that_does_not_clear_is_told(url: str) -> None:
    with pytest.raises(CannotExplore, match="first delete"):
        explore(url, {"a": step, "b": step}, tables=TABLES, setup="INSERT INTO item VALUES (9, 9)")


def test_a_database_that_is_not_there_is_told(tmp_path: Any) -> None:
    with pytest.raises(CannotExplore, match="cannot be reached"):
        explore("postgresql://nobody@127.0.0.1:1/nothing", {"a": step})
    with pytest.raises(CannotExplore, match="cannot be opened"):
        explore(f"sqlite:///{tmp_path}/no/such.db", {"a": step})


def test_async_actors_on_sqlite_need_a_driver(lite_url: str) -> None:
    async def actor(connection: Any) -> None:
        await connection.execute("SELECT 1")

    with pytest.raises(CannotExplore, match=r"pass connect=aiosqlite\.connect"):
        explore(lite_url, {"a": actor}, tables=TABLES, setup=SETUP)
    assert explore(lite_url, {"a": actor}, setup=SETUP, connect=aiosqlite.connect).complete
