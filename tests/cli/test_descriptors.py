"""A worker's process that runs out of file descriptors says so before and after, and `doctor` what to do."""

from __future__ import annotations

import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from fencerow.core.model.wanted import Stated
from fencerow.core.store import store
from fencerow.db import descriptors
from fencerow.db.descriptors import DescriptorCount, counted
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import Cli, command
from tests.kit.command import Command
from tests.kit.pace import PATIENCE_S
from tests.kit.shortage import no_descriptors

AnyEngine = SqliteEngine | PostgresEngine
LIMIT = 300
NONE = 3  # the standard streams
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they are counted on Linux only")

APP = """
import os, time
from fencerow import App

app = App()

@app.job
def keeps(number: int, end: str) -> None:
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(number)]
    try:
        while not os.access(end, os.F_OK):
            time.sleep(0.05)
    finally:
        for each in held:
            os.close(each)
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "other_keeping.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCEROW_RENEW_S", "0.5")
    monkeypatch.setenv("FENCEROW_BUSY_TIMEOUT_S", "1")
    return "other_keeping:app"


@contextmanager
def worker(engine: AnyEngine, app: str) -> Iterator[Command]:
    """With few descriptors."""
    process = command("worker", "-A", app, "--name", "w1")
    try:
        until(lambda: has_renewed(engine))  # one that is only registered has not opened all that it needs
        limit(process, LIMIT)
        yield process
    finally:
        process.kill()
        sys.stdout.write(process.communicate()[1])  # shown where the test fails


def limit(process: Command, descriptors: int) -> None:
    """What it has open beyond that stays open; it can open nothing more."""
    hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (descriptors, hard))


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def read_until(process: Command, words: str) -> str:
    """What it has said until it said this, or ended."""
    assert process.stderr is not None
    heard = ""
    while words not in heard and (line := process.stderr.readline()):
        heard += line
    return heard


def has_renewed(engine: AnyEngine) -> bool:
    found = engine.run(store.list_workers())
    return bool(found) and found[0].stated is not None and found[0].renewed_at_us > found[0].registered_at_us


def stated(engine: AnyEngine) -> Stated | None:
    found = engine.run(store.list_workers())
    return found[0].stated if found else None


def is_open(engine: AnyEngine, number: int) -> bool:
    said = stated(engine)
    return said is not None and said.descriptors is not None and said.descriptors.open >= number


def keep(cli: Cli, app: str, number: int, end: Path) -> None:
    assert cli("submit", "-A", app, "keeps", f"number={number}", f"end={end}").code == 0


def test_a_process_that_has_nearly_all_open_is_seen(
    cli: Cli, url: str, engine: AnyEngine, app: str, tmp_path: Path
) -> None:
    end, number = tmp_path / "end", int(0.8 * LIMIT)
    with worker(engine, app):
        assert "file descriptors" not in cli("doctor").out
        keep(cli, app, number, end)
        until(lambda: is_open(engine, number))

        found = cli("doctor").out
        shown = cli("workers", "show", "w1").out
        end.touch()
        until(lambda: not is_open(engine, number))
        afterwards = cli("doctor").out

    assert f"of at most {LIMIT} file descriptors open" in found and "worker w1 has 2" in found
    assert "ulimit -n" in found and "LimitNOFILE" in found
    assert f"open of at most {LIMIT}" in shown
    assert "file descriptors" not in afterwards
    assert "shortage" not in found + afterwards, "none was met"


def test_a_shortage_that_is_over_is_told_for_a_while(cli: Cli, url: str, engine: AnyEngine, app: str) -> None:
    with worker(engine, app) as process:
        limit(process, NONE)
        with trouble(engine):  # alone it would notice nothing: what is open stays good
            heard = read_until(process, "could not renew its lease")
            assert "could not renew its lease" in heard, f"it has ended: {heard}"
        limit(process, LIMIT)
        until(lambda: (said := stated(engine)) is not None and said.shortage is not None)

        found = cli("doctor").out
        shown = cli("workers", "show", "w1").out

    assert "worker w1 was short of descriptors, threads or memory within ten minutes: " in found
    assert "ulimit -n" in found
    assert "shortage" in shown


@contextmanager
def trouble(engine: AnyEngine) -> Iterator[None]:
    """All connections to a server are lost at the beginning; a file is locked."""
    if isinstance(engine, SqliteEngine):
        with closing(sqlite3.connect(engine.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
        return
    with psycopg.connect(engine.conninfo, autocommit=True) as own:
        own.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
        )
    yield


def test_who_cannot_even_look_has_none_left() -> None:
    with no_descriptors():
        none_left = counted()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    assert none_left == (limit, limit)


def test_they_are_not_counted_at_each_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [(2, 9), (1, 9)]
    monkeypatch.setattr(descriptors, "counted", seen.pop)
    count = DescriptorCount()

    assert [count.look(), count.look()] == [(1, 9)] * 2
    monkeypatch.setattr(count, "_due", 0.0)
    assert count.look() == (2, 9)


def test_where_they_cannot_be_counted_nothing_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "OPEN_FILES", Path("/proc/self/not-there"))

    assert counted() is None
