"""`worker --processes`: real workers on both databases, which lose nothing when they or their supervisor are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

import fencerow
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import Cli
from tests.kit.pace import LONG_LEASE_S, PATIENCE_S

AnyEngine = SqliteEngine | PostgresEngine

SHOP = """
import asyncio, os, pathlib
from fencerow import App, Job

app = App()

@app.job(queue="work", timeout_s=60)
async def until(job: Job, go: str) -> int:
    while not pathlib.Path(go).exists():
        await asyncio.sleep(0.02)
    return os.getpid()
"""
QUICK = {
    "FENCEROW_LEASE_S": f"{LONG_LEASE_S}",
    "FENCEROW_RENEW_S": "0.5",
    "FENCEROW_SWEEP_S": "0.5",
    "FENCEROW_LOG_FORMAT": "json",
    "FENCEROW_SHUTDOWN_S": "20",
}

T = TypeVar("T")
Log = Callable[[], list[dict[str, object]]]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """The one log of all processes, line by line."""
    return lambda: [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts `worker --processes …`, which writes its log to a file."""
    (tmp_path / "shop.py").write_text(SHOP)
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    made: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        with (tmp_path / "log").open("a") as log:
            made.append(
                subprocess.Popen(
                    [sys.executable, "-m", "fencerow.cli.main", "worker", "-A", "shop:app", *words],
                    env={**os.environ, "PYTHONPATH": str(Path(fencerow.__file__).parents[1])},
                    stdout=log,
                    stderr=log,
                    text=True,
                )
            )
        return made[-1]

    yield start
    for each in made:
        each.kill()  # its processes see that, and leave
        each.wait(PATIENCE_S)


def waited(found: Callable[[], T]) -> T:
    """What it returns, once that is anything."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


def workers(engine: AnyEngine, state: str, count: int) -> dict[int, str]:
    """The names of so many workers in this state, by process id."""

    def found() -> dict[int, str]:
        rows = {each.pid: each.name for each in engine.run(store.list_workers(state=state))}
        return rows if len(rows) == count else {}

    return waited(found)


def workers_now(engine: AnyEngine) -> list[int]:
    """The process ids of all that ever registered."""
    return [each.pid for each in engine.run(store.list_workers())]


def running(cli: Cli, engine: AnyEngine, go: Path) -> str:
    """A job that runs until somebody makes the file; returns when its handler has started."""
    job_id = submitted(cli, go)
    waited(lambda: engine.run(store.read([job_id]))[job_id].state is State.RUNNING)
    return job_id


def submitted(cli: Cli, go: Path) -> str:
    result = cli("submit", "-A", "shop:app", "until", f"go={go}")
    assert result.code == 0, result.err
    return result.out.strip()


@pytest.mark.prove  # nine starts of the command; what a supervisor does is played in tests/supervisor
def test_a_killed_worker_is_replaced_and_all_are_one_service(
    cli: Cli, url: str, engine: AnyEngine, started: Start, tmp_path: Path, log: Log
) -> None:
    service = started("--processes", "2", "--name", "crew", "--slots", "3")
    first = workers(engine, "alive", 2)

    killed = next(pid for pid, name in first.items() if name == "crew-2")
    os.kill(killed, signal.SIGKILL)
    waited(lambda: set(workers_now(engine)) - set(first))
    (tmp_path / "go").touch()
    done = submitted(cli, tmp_path / "go")
    waited(lambda: engine.run(store.read([done]))[done].state is State.SUCCEEDED)
    never = running(cli, engine, tmp_path / "never")
    service.terminate()
    workers(engine, "retired", 1)
    service.terminate()  # the second one is for those in a hurry

    assert service.wait(PATIENCE_S) == 0
    assert engine.run(store.read([never]))[never].state is State.QUEUED
    assert sorted(first.values()) == ["crew-1", "crew-2"]
    numbers = {line["process_number"] for line in log() if line["logger"] == "fencerow.worker"}
    assert numbers == {1, 2}
    assert any("6 slots (3 + 3)" in str(line["message"]) for line in log())
    assert set(workers(engine, "retired", 2)) == {*first, *workers_now(engine)} - {killed}


def test_when_the_supervisor_is_killed_its_workers_leave_in_order(
    cli: Cli, url: str, engine: AnyEngine, started: Start, tmp_path: Path
) -> None:
    service = started("--processes", "2")
    workers(engine, "alive", 2)
    job_id = running(cli, engine, tmp_path / "go")

    service.kill()
    workers(engine, "retired", 1)  # the one that had nothing to do
    (tmp_path / "go").touch()
    workers(engine, "retired", 2)

    job = engine.run(store.read([job_id]))[job_id]
    assert (job.state, job.attempt) == (State.SUCCEEDED, 1)


def test_a_signal_to_the_supervisor_and_to_each_worker_hurries_nobody(
    cli: Cli, lite: SqliteEngine, started: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systemd does by default (`KillMode=control-group`)."""
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    service = started("--processes", "2")
    pids = workers(lite, "alive", 2)
    job_id = running(cli, lite, tmp_path / "go")

    for pid in (*pids, service.pid, *pids):
        os.kill(pid, signal.SIGTERM)
    workers(lite, "retired", 1)
    (tmp_path / "go").touch()

    assert service.wait(PATIENCE_S) == 0
    job = lite.run(store.read([job_id]))[job_id]
    assert (job.state, job.attempt) == (State.SUCCEEDED, 1)


def test_several_drain_the_queue_together(
    cli: Cli, lite: SqliteEngine, started: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    (tmp_path / "go").touch()
    jobs = [submitted(cli, tmp_path / "go") for _ in range(3)]

    service = started("--processes", "2", "--drain")

    assert service.wait(PATIENCE_S) == 0
    assert {each.state for each in lite.run(store.read(jobs)).values()} == {State.SUCCEEDED}


def test_what_every_worker_would_refuse_is_refused_once(
    cli: Cli, started: Start, tmp_path: Path, lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    (tmp_path / "shop.py").write_text("app = None")

    service = started("--processes", "4")

    assert service.wait(PATIENCE_S) == 2
    text = (tmp_path / "log").read_text()
    assert (text.count("FR-101"), text.count("FR-608")) == (1, 1)
    assert cli("worker", "-A", "shop:app", "--processes", "4", "-Q", "work:0").error == "FR-201"
