"""`fencerow move` as a person types it, and what the doctor says on both sides."""

from __future__ import annotations

import json

import pytest

from fencerow.core.config import CoreConfig
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.moving import source
from fencerow.moving.checks import examine_moves
from fencerow.payloads.outside.owner import database_of_payloads
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.jobs import new_job, register, submit
from tests.moving.conftest import mover
from tests.moving.test_steps import broken_off

_clean, cli = command_line._clean, command_line.cli  # fixtures


def test_the_command_says_what_it_would_move_moves_it_and_may_be_repeated(
    cli: Cli, file: SqliteEngine, other: PostgresEngine, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.setenv("FENCEROW_ACTOR", "mara")
    password = postgres_url.partition("://")[2].partition("@")[0].partition(":")[2]
    monkeypatch.setenv("PGPASSWORD", password)
    to = postgres_url.replace(f":{password}@", "@") if password else postgres_url
    (job,) = submit(file, new_job())
    words = ("move", f"sqlite:///{file.path}", to)

    planned = json.loads(cli(*words, "--dry-run", "--json").out)
    moved = cli(*words)
    again = json.loads(cli(*words, "--json").out)

    assert planned["state"] == "not begun"
    assert planned["tables"]["jobs"]["rows"] == 1
    assert "it is open" in moved.out
    assert again["state"] == "moved"
    assert [each.id for each in other.run(store.read([job])).values()] == [job]


def test_a_password_is_not_taken_and_the_way_back_is_not_offered(cli: Cli) -> None:
    refused = cli("move", "sqlite:///a.db", "postgresql://ada:hush@db/shop")
    assert "hush" not in refused.err
    assert "SQLite file to a PostgreSQL" in cli("move", "postgresql://db/shop", "sqlite:///a.db").err


def test_the_doctor_tells_of_a_move_on_both_sides(file: SqliteEngine, other: PostgresEngine) -> None:
    assert not list(examine_moves(file, CoreConfig()))
    before = broken_off(file, other, "closed")

    assert [
        each.level for each in (*examine_moves(file, CoreConfig()), *examine_moves(other, CoreConfig()))
    ] == [
        "warn",
        "warn",
    ]
    before.move(wait_s=0)

    assert [
        each.level for each in (*examine_moves(file, CoreConfig()), *examine_moves(other, CoreConfig()))
    ] == [
        "fail",
        "info",
    ]


def test_a_file_is_not_closed_while_a_job_runs_that_was_claimed_just_now(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    submit(file, new_job())
    file.run(store.claim("mail", [Mark(0)], holder=register(file), names=["send"], limit=10, margin_s=60))
    broken_off(file, other, "begun")
    (move,) = file.run(source.read_moves())

    assert not source.close(file, move)
    submit(file, new_job())


def test_the_owner_of_payloads_outside_goes_along_so_nobody_takes_them_for_orphans(
    file: SqliteEngine, other: PostgresEngine
) -> None:
    own = file.run(database_of_payloads())
    broken_off(file, other, "closed")
    assert file.run(database_of_payloads()) != own

    mover(file, other).reopen()
    assert file.run(database_of_payloads()) == own

    mover(file, other).move(wait_s=0)
    assert other.run(database_of_payloads()) == own
    assert file.run(database_of_payloads()) != own
