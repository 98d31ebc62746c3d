"""The horizon guard: who holds an old snapshot is told, and ended only where a policy says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from fencerow import App
from fencerow.core.telemetry import Fact
from fencerow.doctor.horizon import wal
from fencerow.doctor.horizon.guard import HorizonGuard
from fencerow.doctor.horizon.holders import Holder, blocks, cost, end_session, holders, is_allowed
from fencerow.testing.clock import PostgresClock
from tests.kit.sites import site_of

HOUR_S = 3600.0


@pytest.fixture
def app(postgres_url: str) -> Iterator[App]:
    with App(postgres_url) as made:
        yield made


@pytest.fixture
def pg_clock(postgres_url: str) -> PostgresClock:
    return PostgresClock(postgres_url)


@pytest.fixture
def report(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A session that reads for long."""
    with psycopg.connect(postgres_url, application_name="report-7") as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")
        yield connection
        if not connection.closed:
            connection.rollback()


def held(app: App) -> Holder:
    (found,) = [each for each in app.engine.run(holders()) if each.application == "report-7"]
    return found


def guard_of(app: App, allow: str | None, told: list[dict[str, Any]]) -> HorizonGuard:
    config = replace(app.config, horizon_end_after_s=HOUR_S, horizon_end_allow=allow)
    app.telemetry.listen(lambda name, facts: told.append(dict(facts)) if name == Fact.SESSION_ENDED else None)
    return HorizonGuard(site_of(app.engine, config=config, telemetry=app.telemetry, worker="web-1"))


def test_a_holder_is_told_with_who_since_when_and_what_it_costs(
    app: App, report: psycopg.Connection[Any]
) -> None:
    found = held(app)

    assert (found.kind, found.pid, found.may_end) == ("session", report.info.backend_pid, True)
    assert found.state == "idle in transaction" and found.since_us is not None and found.query_us is not None
    assert found.client is not None and "report-7" in found.named
    assert app.engine.run(cost()).dead >= 0 and 0 < app.engine.run(blocks()) < 100


async def test_the_policy_ends_what_it_names_and_tells_of_it(
    app: App, report: psycopg.Connection[Any], pg_clock: PostgresClock, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[dict[str, Any]] = []
    guard = guard_of(app, "report-*", told)
    await guard.tick()
    report.execute("SELECT 1")  # it is not old enough
    pg_clock.advance(2 * HOUR_S)
    await guard.tick()

    with pytest.raises(psycopg.OperationalError):
        report.execute("SELECT 1")
    (entry,) = [each for each in await app.client.audit.aentries() if each.kind == "session"]
    assert entry.verb == "ended" and "report-7" in entry.targets[0] and "web-1" in entry.person
    assert [each["application"] for each in told] == ["report-7"]
    assert "ended the session" in caplog.text and "report-7" in caplog.text
    await app.aclose()


async def test_what_no_rule_names_is_left(
    app: App, report: psycopg.Connection[Any], pg_clock: PostgresClock
) -> None:
    told: list[dict[str, Any]] = []
    pg_clock.advance(2 * HOUR_S)
    await guard_of(app, "dump-*,role:nobody", told).tick()

    assert report.execute("SELECT 1").fetchone() == (1,) and told == []
    assert not guard_of(app, None, told).is_on
    await app.aclose()


def test_a_session_that_is_in_another_transaction_by_now_is_left(
    app: App, report: psycopg.Connection[Any]
) -> None:
    found = held(app)
    report.rollback()
    report.execute("SELECT 1")

    assert app.engine.run(end_session(found)) == []
    assert report.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("allow", "allowed"),
    [
        ("report-*", True),
        ("dump, report-7", True),
        ("role:app", True),
        ("role:root", False),
        ("*-8", False),
        (None, False),
    ],
)
def test_a_rule_names_applications_and_roles(allow: str | None, allowed: bool) -> None:
    holder = Holder("session", "app", 1, "report-7", None, None, 1, None, 1, True)

    assert is_allowed(holder, allow) is allowed
    assert not is_allowed(msgspec.structs.replace(holder, application=None, who=None), allow)


def test_a_write_ahead_log_that_grows_is_told_with_who_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    assert list(wal.examine_wal(path)) == []
    with sqlite3.connect(path, isolation_level=None) as writer, sqlite3.connect(path) as reader:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("CREATE TABLE t (n)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        (small,) = wal.examine_wal(path)
        monkeypatch.setattr(wal, "WARN_BYTES", 1)
        (large,) = wal.examine_wal(path)
        reader.rollback()
    writer.close()
    reader.close()

    assert (small.level, large.level) == ("ok", "warn")
    assert "this one" in large.found or not wal.LOCKS.exists()
