"""What holds at each step of a move, and what somebody finds who breaks it off there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from fencerow.core.errors import DatabaseFilling, DatabaseMoved
from fencerow.core.store import store
from fencerow.core.store.attempts import Requeue
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.moving.errors import MoveRefused, MoveUnverified
from fencerow.moving.moving import Mover
from tests.kit.jobs import new_job, register, submit
from tests.moving.conftest import mover
from tests.moving.rows import ROWS


class BrokenOffError(Exception):
    """As if the process had died at this step."""


def claim(engine: SqliteEngine | PostgresEngine) -> list[str]:
    taken = engine.run(
        store.claim("mail", [Mark(0)], holder=register(engine), names=["send"], limit=10, margin_s=60)
    )
    return [each.id for each in taken]


def until(step: str) -> Callable[[str, int, int], None]:
    def tell(found: str, _done: int, _of: int) -> None:
        if found == step:
            raise BrokenOffError(found)

    return tell


def broken_off(file: SqliteEngine, other: PostgresEngine, step: str) -> Mover:
    with pytest.raises(BrokenOffError):
        mover(file, other, tell=until(step)).move(wait_s=0)
    return mover(file, other)


def test_a_move_that_is_broken_off_at_each_of_its_steps_arrives_whole(
    full: SqliteEngine, other: PostgresEngine
) -> None:
    for step in (
        "begun",
        "other closed",
        "claims stopped",
        "closed",
        "schedules",
        "audit",
        "open gates",
        "opened",
    ):
        broken_off(full, other, step)

    report = mover(full, other).move(wait_s=0)

    assert report.state == "moved"
    with closing(psycopg.connect(other.conninfo)) as connection:
        found = {
            name: connection.execute(
                SQL("SELECT count(*) FROM fencerow.{}").format(Identifier(name))
            ).fetchone()
            for name in ROWS
        }
    assert found == dict.fromkeys(ROWS, (1,))


def test_nobody_claims_in_the_file_from_the_start_on_and_submits_go_along_until_it_is_closed(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    (first,) = submit(file, new_job())
    before = broken_off(file, other, "claims stopped")

    assert claim(file) == []
    (second,) = submit(file, new_job())
    before.move(wait_s=0)

    assert sorted(claim(other)) == sorted([first, second])
    assert claim(other) == []


def test_a_job_that_runs_is_waited_for_and_its_retry_goes_along(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    (job,) = submit(file, new_job())
    holder = register(file)
    (taken,) = file.run(store.claim("mail", [Mark(0)], holder=holder, names=["send"], limit=10, margin_s=60))

    with pytest.raises(MoveRefused, match="1 job still runs"):
        mover(file, other).move(wait_s=0)
    back = Requeue(id=job, attempt=taken.attempt, kind="snoozed", delay_s=0.0)
    file.run(store.requeue([back], holder=holder))
    mover(file, other).move(wait_s=0)

    assert claim(other) == [job]


def test_a_closed_file_takes_nothing_and_says_where_its_jobs_went(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    (job,) = submit(file, new_job())
    broken_off(file, other, "closed")

    for refused in (
        lambda: submit(file, new_job()),
        lambda: claim(file),
        lambda: file.run(store.cancel(job, actor="ada")),
    ):
        with pytest.raises(DatabaseMoved, match="postgresql://there/db"):
            refused()
    with (
        closing(sqlite3.connect(file.path)) as stranger,
        pytest.raises(sqlite3.IntegrityError, match="moved to"),
    ):
        stranger.execute("DELETE FROM fencerow_jobs")


def test_the_new_database_takes_nothing_before_all_is_there(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    (job,) = submit(file, new_job())
    before = broken_off(file, other, "closed")

    with pytest.raises(DatabaseFilling):
        submit(other, new_job())
    assert claim(other) == []
    before.move(wait_s=0)

    assert claim(other) == [job]
    submit(other, new_job())


def test_what_is_not_what_was_sent_is_not_opened(full: SqliteEngine, other: PostgresEngine) -> None:
    before = broken_off(full, other, "open jobs")
    with closing(psycopg.connect(other.conninfo)) as connection, connection:
        connection.execute(
            "UPDATE fencerow.move_parts SET rows = jsonb_set(rows, '{0,4}', '5') WHERE table_name = 'jobs'"
        )

    with pytest.raises(MoveUnverified, match="jobs has 1 row"):
        before.move(wait_s=0)

    assert claim(other) == []
    assert before.reopen()
    submit(full, new_job())


def test_a_move_is_taken_back_as_if_it_had_not_been_and_not_once_the_new_database_is_open(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    (job,) = submit(file, new_job())
    assert broken_off(file, other, "closed").reopen()

    assert claim(file) == [job]
    submit(other, new_job())

    assert not mover(file, other).reopen()


def test_it_is_not_taken_back_once_the_new_database_is_open(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    before = broken_off(file, other, "opened")

    with pytest.raises(MoveRefused, match="open already"):
        before.reopen()

    assert before.move(wait_s=0).state == "moved"
    assert before.move(wait_s=0).state == "moved"


def test_a_database_with_jobs_is_refused_and_the_file_goes_on(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    submit(other, new_job())
    (job,) = submit(file, new_job())

    with pytest.raises(MoveRefused, match="not empty: jobs"):
        mover(file, other).move(wait_s=0)

    assert claim(file) == [job]


def test_jobs_go_to_one_place_only(file: SqliteEngine, other: PostgresEngine) -> None:
    broken_off(file, other, "begun")

    with pytest.raises(MoveRefused, match="postgresql://there/db"):
        mover(file, other, name="postgresql://elsewhere/db").move(wait_s=0)


def test_what_the_database_counts_up_goes_on_behind_what_came(
    full: SqliteEngine, other: PostgresEngine
) -> None:
    mover(full, other).move(wait_s=0)

    with closing(psycopg.connect(other.conninfo)) as connection:

        def one(text: Any) -> Any:
            return connection.execute(text).fetchone()

        columns = "job_id, attempt, at, level, message"
        again = (
            f"INSERT INTO fencerow.job_logs ({columns}) SELECT {columns} FROM fencerow.job_logs RETURNING id"
        )
        assert one(again) == (10,)
        assert one("SELECT seq, settled, trimmed FROM fencerow.events, fencerow.event_marks") == (21, 21, 20)


def test_workers_that_stand_there_already_have_declared_what_they_know_and_what_came_counts(
    full: SqliteEngine, other: PostgresEngine
) -> None:
    with closing(psycopg.connect(other.conninfo)) as connection, connection:
        for name in ("nightly", "newer"):
            connection.execute(
                "INSERT INTO fencerow.schedules (name, entity, kind, job, origin, owner, definition, digest, next_at,"
                " changed_at) VALUES (%s, '', 'single', 'send', 'code', 'shop', '{}', 'd', now(), now())",
                [name],
            )

    mover(full, other).move(wait_s=0)

    with closing(psycopg.connect(other.conninfo)) as connection:
        rows = connection.execute(
            "SELECT name, pause_reason FROM fencerow.schedules ORDER BY name"
        ).fetchall()
    assert rows == [("newer", None), ("nightly", "audit")]
