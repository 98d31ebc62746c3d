"""`fencerow sql --function`: a job submitted in SQL is the same row as one that a client submits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencerow import App
from fencerow.cli.grants import SUBMIT, filled
from fencerow.cli.sql_function import function_sql
from fencerow.core.model.backoff import Backoff
from fencerow.errors import InvalidInput
from fencerow.payloads import Sign
from fencerow.testing import drain
from fencerow.testing.postgres import PostgresServer

SHOP = """
from fencerow import App

app = App()


@app.job(queue="documents", priority=3, attempts_max=7, timeout_s=60)
def pages(path: str, copies: int = 1) -> int:
    return copies


@app.job(exclusive=lambda account: account)
def book(account: str) -> None: ...
"""
OTHERWISE = {"id", "run_at", "submitted_at", "submitted_by", "expires_at"}


@pytest.fixture
def app(postgres_url: str) -> Iterator[App]:
    made = App(postgres_url, actor="ada")
    made.job(name="pages", queue="documents", priority=3, attempts_max=7, timeout_s=60)(pages)
    made.job(name="often", backoff=Backoff(base_s=7), expires_s=600, retention_s=60, ephemeral=True)(pages)
    made.job(name="book", exclusive="k")(pages)
    yield made
    made.close()


def pages(path: str, copies: int = 1) -> int:
    return copies


@pytest.fixture
def sql(app: App, postgres_url: str, server: PostgresServer) -> Iterator[Callable[..., Any]]:
    """Run a statement as a role that may submit and nothing else, after the printed function was made."""
    database = postgres_url.split("@/")[1].split("?")[0]
    role = f"sql_{database}"
    with server.connect(database) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN".encode())
        for line in filled(SUBMIT, "fencerow", role):
            owner.execute(line.encode())
        owner.execute(function_sql(app, submit=role).encode())
        with psycopg.connect(server.conninfo(database, role), autocommit=True) as connection:
            yield lambda text, *given: connection.execute(text, given).fetchone()
        owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


@pytest.mark.parametrize("job", ["pages", "often"])
def test_the_row_is_the_same_by_whatever_way_it_came(app: App, sql: Callable[..., Any], job: str) -> None:
    labels: dict[str, Any] = {"tags": ["big"], "metadata": {"a": 1}, "headers": {"h": "1"}}
    own = app.submit_by_name(job, {"path": "ü.pdf", "copies": 2}, priority=5, **labels)
    (made,) = sql(
        'SELECT fencerow.submit(%s, \'{"path":"ü.pdf","copies":2}\', priority => 5, tags => ARRAY[\'big\'],'
        ' metadata => \'{"a":1}\', headers => \'{"h":"1"}\')',
        job,
    )
    with psycopg.connect(app.engine.conninfo) as owner:  # type: ignore[attr-defined]
        found = owner.execute("SELECT to_json(job) FROM fencerow.jobs AS job").fetchall()

    rows = {
        row["id"]: {name: value for name, value in row.items() if name not in OTHERWISE} for (row,) in found
    }
    assert rows[str(made)] == rows[own.id]
    drain(app)
    if job == "pages":
        assert app.client.handle(str(made)).result(0) == 2


def test_what_cannot_be_submitted_so_is_refused_and_leaves_nothing(app: App, sql: Callable[..., Any]) -> None:
    for call, words in (
        ("submit('pagez')", "no job 'pagez' is declared"),
        ("submit('book')", "job 'book' needs a client"),
        ("submit('pages', '[1]')", "no JSON object"),
        (r"""submit('pages', '{"path": "\u0000"}')""", "no JSON object"),
        ("""submit('pages', json_build_object('path', repeat('a', 2000000)))""", "larger than 1048576 bytes"),
    ):
        with pytest.raises(psycopg.Error, match=words):
            sql(f"SELECT fencerow.{call}")
    assert app.client.list_jobs() == []


def test_it_is_part_of_the_callers_transaction(app: App, sql: Callable[..., Any], postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT fencerow.submit('pages', '{\"path\": \"a\"}')")
        connection.rollback()
        connection.execute("SELECT fencerow.submit('pages', '{\"path\": \"b\"}', delay_s => 60)")
    assert [job.queue for job in app.client.list_jobs()] == ["documents"]


def test_the_command_prints_it_and_refuses_where_there_is_none(
    cli: Callable[..., Any], tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    printed = cli("sql", "--function", "-A", "shop:app", "--url", postgres_url, "--submit-role", "submits")
    assert printed.code == 0
    assert "'pages', 'documents', 3" in printed.out
    assert 'TO "submits"' in printed.out
    (tmp_path / "other.py").write_text(SHOP)
    refused = cli("sql", "--function", "-A", "other:app", "--url", "sqlite:///x.db")
    assert (refused.code, refused.error) == (2, "FR-201")


def test_an_app_that_seals_its_payloads_has_none(postgres_url: str) -> None:
    with App(postgres_url, seal=Sign({"a": b"k" * 32})) as app:
        app.job(pages)
        with pytest.raises(InvalidInput, match="packs its payloads"):
            function_sql(app, submit="submits")
