"""A worker's process whose event loop is blocked: its time limits hold, signals reach it, and it says why it ended."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.db.errors import exits
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import Cli, command
from tests.kit.command import Command
from tests.kit.pace import PATIENCE_S

AnyEngine = SqliteEngine | PostgresEngine
PENDING = re.compile(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$", re.MULTILINE)

APP = """
import asyncio, time
from pathlib import Path
from fencerow import App

app = App()

@app.job(attempts_max=1, timeout_s=1.0, priority=-1)
async def blocks(sign: str) -> None:
    Path(sign).touch()
    time.sleep(3600)

@app.job(attempts_max=1, timeout_s=600.0, priority=-1)
async def blocks_within_its_time(sign: str) -> None:
    Path(sign).touch()
    time.sleep(3600)

@app.job(attempts_max=1)
def beside(sign: str) -> None:
    Path(sign).touch()
    time.sleep(3600)

@app.job(attempts_max=1)
async def waits(sign: str) -> None:
    Path(sign).touch()
    await asyncio.sleep(3600)
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "other_blocked.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return "other_blocked:app"


@pytest.fixture
def submit(cli: Cli, url: str, app: str, tmp_path: Path) -> Callable[[str], tuple[str, Path]]:
    def one(name: str) -> tuple[str, Path]:
        sign = tmp_path / f"{name}.began"
        result = cli("submit", "-A", app, name, f"sign={sign}")
        assert result.code == 0, result.err
        return result.out.strip(), sign

    return one


@contextmanager
def worker(app: str) -> Iterator[Command]:
    process = command("worker", "-A", app)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def seen(sign: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not sign.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def come(process: Command) -> None:
    """Wait until no signal is pending for it: two that are pending together are one."""
    status = Path(f"/proc/{process.pid}/status")
    deadline = time.monotonic() + PATIENCE_S
    while any(int(mask, 16) for mask in PENDING.findall(status.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def job(engine: AnyEngine, job_id: str) -> JobRecord:
    return engine.run(store.read([job_id]))[job_id]


def test_past_its_time_limit_it_is_counted_and_its_neighbours_are_not(
    engine: AnyEngine, app: str, submit: Callable[[str], tuple[str, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_CANCEL_KILL_S", "1")
    beside, waits, blocks = submit("beside"), submit("waits"), submit("blocks")
    with worker(app) as process:
        seen(blocks[1])
        _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == exits.BLOCKED
    assert "FR-407" in err and blocks[0] in err
    ended = job(engine, blocks[0])
    assert (ended.state, ended.failures, ended.crashes) == ("failed", 1, 0)
    assert "FR-403" in str(ended.error)
    assert beside[1].exists() and waits[1].exists()
    for each in (beside, waits):
        left = job(engine, each[0])
        assert (left.state, left.failures, left.crashes) == ("queued", 0, 0), "others may run it at once"
    assert [each.state for each in engine.run(store.list_workers())] == ["retired"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which signals are pending")
@pytest.mark.parametrize("signals", [1, 2], ids=["one", "a second one hurries"])
def test_a_signal_ends_it_and_its_job_goes_back_uncounted(
    engine: AnyEngine,
    app: str,
    submit: Callable[[str], tuple[str, Path]],
    monkeypatch: pytest.MonkeyPatch,
    signals: int,
) -> None:
    monkeypatch.setenv("FENCEROW_CANCEL_KILL_S", "1" if signals == 1 else "3600")
    job_id, sign = submit("blocks_within_its_time")
    with worker(app) as process:
        seen(sign)
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            come(process)
        _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == exits.BLOCKED
    assert "it was asked to end" in err and job_id in err
    left = job(engine, job_id)
    assert (left.state, left.failures, left.crashes) == ("queued", 0, 0)
    assert [each.state for each in engine.run(store.list_workers())] == ["retired"]


SIGNALS = """
import re, signal, socket, sys, threading, time
from fencerow.cli.signals import Signals

here, there = socket.socketpair()
there.setblocking(False)
with Signals([signal.SIGTERM], lambda _: print("told", flush=True)):
    if sys.argv[1] == "the descriptor is taken":
        signal.set_wakeup_fd(there.fileno())
    print("ready", flush=True)
    if sys.argv[1] == "python":
        while True:
            pass
    while True:
        time.sleep(0.05)
"""


@pytest.mark.parametrize("main_thread", ["python", "sleeps", "the descriptor is taken"])
def test_each_signal_is_told_once(main_thread: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SIGNALS, main_thread], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "told\n"
    process.kill()

    assert process.communicate()[0] == ""
