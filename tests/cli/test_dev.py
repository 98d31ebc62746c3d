"""`fencerow dev`: it shows life, starts anew with the code as it is now, and loses no work on the way."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from fencerow.cli.sources import Sources
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import new_command, url_of
from tests.kit.jobs import new_job, submit
from tests.kit.pace import PATIENCE_S

AnyEngine = SqliteEngine | PostgresEngine
CODE = """
import asyncio, logging
from pathlib import Path
from fencerow import App, Job

app = App()

@app.job
async def answer(job: Job) -> list:
    logging.getLogger("shop").info("at work on version {version}")
    Path("started-{version}").touch()
    if {waits}:
        await asyncio.sleep(600)
    return [{version}, job.attempt, job.failures]
"""


def write(version: int, *, waits: bool = False) -> None:
    Path("shop.py").write_text(CODE.replace("{version}", str(version)).replace("{waits}", str(waits)))


class Dev:
    """`fencerow dev`, and what it has said so far."""

    def __init__(self, folder: Path, option: str) -> None:
        self._err = (folder / "err.txt").open("w+")
        self.process = new_command("dev", "-A", "shop:app", option, stderr=self._err)

    def said(self) -> str:
        self._err.seek(0)
        return self._err.read()

    def until(self, done: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < deadline and self.process.poll() is None, self.said()
            time.sleep(0.02)

    def heard(self, text: str, count: int = 1) -> None:
        self.until(lambda: self.said().count(text) >= count)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)
        self._err.close()


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Callable[..., Dev]]:
    started: list[Dev] = []

    def start(option: str = "--no-dashboard") -> Dev:
        started.append(Dev(tmp_path, option))
        return started[-1]

    yield start
    for each in started:
        each.close()


def put(engine: AnyEngine) -> str:
    (job_id,) = submit(engine, new_job("{}", name="answer", queue="default"))
    return job_id


def job_of(engine: AnyEngine, job_id: str) -> JobRecord:
    return engine.run(store.read([job_id]))[job_id]


def test_a_change_starts_the_worker_anew_and_what_ran_runs_again(
    url: str, engine: AnyEngine, dev: Callable[..., Dev]
) -> None:
    write(1, waits=True)
    running = dev("--no-open")
    running.heard("waits for jobs")
    (place,) = re.findall(r"http://127\.0\.0\.1:\d+/\S+/", running.said())
    board = httpx.get(f"{place}jobs")
    job_id = put(engine)
    running.until(Path("started-1").exists)

    write(2)
    running.until(lambda: job_of(engine, job_id).state is State.SUCCEEDED)

    job = job_of(engine, job_id)
    assert job.result == [2, 2, 0], "the second attempt, of the new code, and no failure was counted"
    said = running.said()
    assert (board.status_code, said.count(place)) == (200, 2), "its address stays when it starts again"
    assert "fencerow submit -A shop:app answer" in said
    assert "changed: shop.py; the worker starts again" in said
    assert f"1 job that still runs is cancelled and released: {job_id}" in said
    assert f"shop: at work on version 2  job=answer job_id={job_id} attempt=2" in said


def test_a_file_with_a_syntax_error_is_named_and_the_next_change_starts_the_worker_again(
    lite: AnyEngine, dev: Callable[[], Dev], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", url_of(lite))
    write(1)
    running = dev()
    running.heard("waits for jobs")

    Path("shop.py").write_text("app = (\n")
    running.heard("it starts again when a source file changes")
    job_id = put(lite)
    write(2)
    running.until(lambda: job_of(lite, job_id).state is State.SUCCEEDED)
    running.process.send_signal(signal.SIGINT)

    assert running.process.wait(PATIENCE_S) == 0
    said = running.said()
    assert "module shop cannot be imported" in said and "SyntaxError" in said and "shop.py:1" in said
    assert job_of(lite, job_id).result == [2, 1, 0]
    assert [each.state for each in lite.run(store.list_workers())] == ["retired", "retired"]
    assert said.rstrip().splitlines()[-1].endswith("ended: 1 succeeded; 0 released at its end")


def test_a_start_that_fails_ends_it_with_the_reason(lite: AnyEngine, dev: Callable[[], Dev]) -> None:
    Path("shop.py").write_text("import nowhere\n")
    running = dev()

    assert running.process.wait(PATIENCE_S) == 2
    assert "No module named 'nowhere'" in running.said()


def test_sources_are_the_users_own_files(tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.py", ".git/c.py", "env/d.py", "node_modules/e.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    sources = Sources([tmp_path])
    assert (sources.count, sources.changed()) == (2, set())

    (tmp_path / "a.py").write_text("1")
    (tmp_path / "sub" / "b.py").unlink()
    (tmp_path / "new.py").touch()
    (tmp_path / "notes.txt").write_text("1")

    assert {Path(each).name for each in sources.changed()} == {"a.py", "b.py", "new.py"}
    assert sources.changed() == set()
