"""`fencerow history check`: a recorded run is clean, a row that vanished is not, and the exit code says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencerow import App
from fencerow.db.engine import Engine
from fencerow_proof.history import recording
from tests.cli.conftest import Cli
from tests.kit.jobs import AnyEngine


@pytest.fixture
def run(url: str, tmp_path: Path) -> str:
    """A recorded run of two jobs, one of them cancelled; returns the history's folder."""
    folder = tmp_path / "history"
    with App(url) as app:
        recording(app, folder)

        @app.job
        async def send(n: int) -> None: ...

        send.submit(1).cancel()
        send.submit(2)
    return str(folder)


def test_a_clean_run(cli: Cli, run: str) -> None:
    done = cli("history", "check", run, "--undrained")
    assert done.code == 0, done.out
    assert "I1   holds" in done.out
    assert "I5   not decided: nothing to look at" in done.out
    assert cli("history", "check", run).code == 1, "a job was left"


def test_a_row_that_vanished(cli: Cli, run: str, engine: AnyEngine) -> None:
    empty(engine, getattr(engine, "prefix", "fencerow."))
    done = cli("history", "check", run, "--undrained", "--json")
    assert done.code == 1
    (lost,) = [each for each in done.json["violations"] if each["invariant"] == "I1"]
    assert lost["what"] == "its submit was answered, and it is nowhere"
    assert len(lost["lines"]) == 2
    assert all(line.startswith(run) and line.rpartition(":")[2].isdigit() for line in lost["lines"])


def empty(engine: Engine, prefix: str) -> None:
    with engine.session() as session:
        session.connection.execute(f"DELETE FROM {prefix}jobs")


def test_without_a_database(cli: Cli, run: str) -> None:
    done = cli("history", "check", run, "--undrained", "--history-only")
    assert done.code == 0
    assert "no database was given" in done.out


def test_what_is_no_history(cli: Cli, url: str, tmp_path: Path) -> None:
    assert url
    (tmp_path / "x.history.jsonl").write_text("no json\n")
    for paths in (["none"], ["x.history.jsonl"]):
        done = cli("history", "check", *paths)
        assert (done.code, done.error) == (2, "FR-201")
