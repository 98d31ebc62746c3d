"""worker and dev as processes: they run what is due, stop in order on a signal, and say why they end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencerow.cli import running
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import Cli, command, new_command
from tests.kit.pace import PATIENCE_S

AnyEngine = SqliteEngine | PostgresEngine


def until(happened: Path) -> None:
    """The handler's own sign that it has started."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def submit(cli: Cli, *words: str) -> str:
    result = cli("submit", "-A", "shop:app", *words)
    assert result.code == 0, result.err
    return result.out.strip()


def state_of(engine: AnyEngine, job_id: str) -> State:
    return engine.run(store.read([job_id]))[job_id].state


def test_once_runs_what_is_due_and_ends(cli: Cli, url: str, engine: AnyEngine, shop: str) -> None:
    due, later = submit(cli, "send", "to=ada"), submit(cli, "send", "to=bob", "--delay", "3600")

    process = new_command("worker", "-A", shop, "--once")
    out, err = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, out) == (0, ""), err
    assert [state_of(engine, due), state_of(engine, later)] == [State.SUCCEEDED, State.QUEUED]
    assert "Traceback" not in err


def test_drain_waits_for_what_comes_later(cli: Cli, url: str, engine: AnyEngine, shop: str) -> None:
    later = submit(cli, "send", "to=bob", "--delay", "0.7")

    process = command("worker", "-A", shop, "--drain")
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, err
    assert state_of(engine, later) is State.SUCCEEDED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_cancels_what_runs_and_hands_it_back(
    cli: Cli, url: str, engine: AnyEngine, shop: str, tmp_path: Path, number: signal.Signals
) -> None:
    sign = tmp_path / "started"
    job_id = submit(cli, "slow", f"started={sign}")
    process = command("worker", "-A", shop)
    until(sign)

    process.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, err
    job = engine.run(store.read([job_id]))[job_id]
    assert (job.state, job.failures) == (State.QUEUED, 0), "handed back, uncounted"
    assert f"stops ({number.name}) and claims no more; 1 job runs, which may take" in err
    assert f"1 job that still runs is cancelled and released: {job_id}" in err
    assert f"has stopped; ended: nothing; 1 released at its end: {job_id}" in err
    assert [each.state for each in engine.run(store.list_workers())] == ["retired"]


def test_queues_of_its_own_are_all_that_a_worker_serves(
    cli: Cli, url: str, engine: AnyEngine, shop: str
) -> None:
    served, other = submit(cli, "send", "to=x"), submit(cli, "send", "to=y", "--queue", "other")

    process = command("worker", "-A", shop, "-Q", "mail:3", "--name", "postman", "--once")
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, err
    assert [state_of(engine, served), state_of(engine, other)] == [State.SUCCEEDED, State.QUEUED]
    (registered,) = engine.run(store.list_workers())
    assert (registered.name, registered.info["queues"], registered.info["slots"]) == (
        "postman",
        {"mail": 3},
        3,
    )


def test_the_log_may_be_json_with_the_attempt_in_each_line(
    cli: Cli, url: str, engine: AnyEngine, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(cli, "fail", '{"text": "no\\u001b[31m\\n12:00:00 INFO forged"}')
    monkeypatch.setenv("FENCEROW_LOG_FORMAT", "json")

    process = command("worker", "-A", shop, "--once")
    _, err = process.communicate(timeout=PATIENCE_S)

    events = [json.loads(line) for line in err.splitlines()]
    about = [event for event in events if event.get("job_id") == job_id]
    assert about
    assert about[0]["attempt"] == 1
    assert "\x1b" not in err


def test_no_text_of_a_job_can_forge_a_line_of_the_log(
    cli: Cli, url: str, engine: AnyEngine, shop: str
) -> None:
    submit(cli, "fail", '{"text": "no\\u001b[31m\\n12:00:00.000 INFO forged"}')

    process = command("worker", "-A", shop, "--once")
    _, err = process.communicate(timeout=PATIENCE_S)

    assert "forged" in err
    assert not [line for line in err.splitlines() if line.startswith("12:00:00.000 INFO forged")]
    assert "\x1b" not in err


def test_a_worker_wants_a_database_that_somebody_named(cli: Cli, shop: str, tmp_path: Path) -> None:
    result = cli("worker", "-A", shop)

    assert (result.code, result.error) == (2, "FR-105")
    assert not list(tmp_path.glob("*.db"))


def test_dev_makes_a_local_file_and_runs_its_jobs(cli: Cli, shop: str, tmp_path: Path) -> None:
    process = command("dev", "-A", shop)
    until(tmp_path / "fencerow.db")
    deadline = time.monotonic() + PATIENCE_S
    while cli("workers").code or not cli("workers", "--state", "alive", "--json").json:
        assert time.monotonic() < deadline
    done = cli("submit", "send", "to=ada", "--wait", "-A", shop, "--url", f"sqlite:///{tmp_path}/fencerow.db")
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, err
    assert (done.code, done.out) == (0, '{"to": "ada", "n": 1}\n')
    assert "fencerow.db" in err, "it says where the jobs lie"
    assert "    dashboard   http://127.0.0.1:" in err
    assert "Warning" not in err


def test_two_databases_at_once_are_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("from fencerow import App\napp = App('sqlite:///own.db')\n")

    result = cli("worker", "-A", "other:app", "--url", "sqlite:///another.db")

    assert (result.code, result.error) == (2, "FR-101")
    assert not list(tmp_path.glob("*.db"))


def test_a_loop_that_dies_takes_the_process_down_with_its_reason(
    cli: Cli, url: str, engine: AnyEngine, tmp_path: Path
) -> None:
    (tmp_path / "other.py").write_text(
        "from fencerow import App\n"
        "from fencerow.core.worker import claimer\n"
        "app = App()\n"
        "@app.job\n"
        "async def nothing() -> None: ...\n"
        "async def tick(self): raise AssertionError('a fault of ours')\n"
        "claimer.Claimer.tick = tick\n"
    )

    process = command("worker", "-A", "other:app")
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 1
    assert "a fault of ours" in err.splitlines()[-3]


class Drained:
    """A worker that drains: its answers, one a look, and what was left of them when it was asked to stop."""

    def __init__(self, held: Sequence[int], soon: Sequence[bool | Exception]) -> None:
        self.held, self.soon = list(held), list(soon)
        self.stopped = False

    @property
    def running(self) -> int:
        return self.held.pop(0)

    async def queues_soon(self) -> bool:
        answer = self.soon.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def request_stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize(
    ("held", "soon"),
    [
        pytest.param(
            [1, 1, 0, 0], [False], id="the database knows of the last end a moment before the worker does"
        ),
        pytest.param([0, 0, 0], [True, False], id="a job is about to be queued"),
        pytest.param([0, 1, 0, 0], [False, False], id="a job was queued meanwhile"),
        pytest.param([0, 0, 0], [OSError("away"), False], id="the database was away"),
    ],
)
async def test_drain_ends_when_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, held: Sequence[int], soon: Sequence[bool | Exception]
) -> None:
    monkeypatch.setattr(running, "LOOK_S", 0)

    class Engine:
        async def arun(self, _operation: object) -> list[object]:
            return []

    app: Any = SimpleNamespace(handlers={}, engine=Engine())
    drained = Drained(held, soon)
    worker: Any = drained

    async with asyncio.timeout(PATIENCE_S):
        await running._watch(app, worker)

    assert drained.stopped and (drained.held, drained.soon) == ([], [])
