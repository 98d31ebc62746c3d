"""Real apps with real workers, recorded by one line: their histories are clean, and every promise was looked at."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from fencerow import App
from fencerow.core.store import store
from fencerow.errors import IllegalMove, KeyConflict
from fencerow.operators import looking
from fencerow_proof.history.check import Options, check
from fencerow_proof.history.final import create_effects
from fencerow_proof.history.reading import read_history
from fencerow_proof.history.recorder import SUFFIX, Recorder
from tests.kit.jobs import new_job
from tests.proof.history import shop as shops

ROOT = Path(__file__).parents[3]
PAYS = {"pay", "pay_plain"}


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Handlers here fail on purpose."""
    caplog.set_level("CRITICAL", "fencerow.job")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{request.getfixturevalue('sqlite_path')}"


async def mixed(app: App) -> None:
    """Jobs of every ending, moved by hand in every way."""
    submit = app.asubmit_by_name
    ids = [
        await submit(name)
        for name in ("pay", "pay_plain", "shaky", "doze", "broken", "still")
        for _ in range(5)
    ]
    idle = await submit("pay", delay_s=600)
    await idle.acancel()
    for _ in range(2):
        await submit("doze", key="k", scope="s")
    with suppress(KeyConflict):
        await submit("pay", key="k", scope="s")
    async with app.worker(slots=4):
        for handle in ids[25:]:
            await handle.acancel()
        for handle in ids:
            with suppress(Exception):
                await handle.aresult(timeout_s=60)
        await app.client.arevive(ids[20].id)
        await idle.arevive()
        with suppress(IllegalMove):  # the worker may have been faster
            await idle.acancel()
        with suppress(Exception):
            await ids[20].aresult(timeout_s=60)
    await app.engine.arun(store.delete([ids[0].id]))


async def test_a_run_of_everything_is_clean(url: str, tmp_path: Path) -> None:
    app = shops.shop(url, tmp_path)
    app.check_or_create()
    create_effects(app.engine)
    await mixed(app)
    report = check([tmp_path], app.engine, Options(effects=PAYS))
    await app.aclose()
    assert report.is_clean, report.text()
    assert report.undecided == 0
    missing = {
        name
        for name in ("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I14", "I15")
        if not report.looked[name]
    }
    assert not missing, report.text()


@pytest.mark.prove
def test_a_killed_worker_leaves_a_history_that_can_be_read(url: str, tmp_path: Path) -> None:
    """`kill -9` in the midst of its jobs, and another worker that goes on."""
    app = shops.shop(url, tmp_path)
    app.check_or_create()
    create_effects(app.engine)
    for name in ("pay", "pay_plain", "shaky") * 50:
        app.submit_by_name(name)
    for number in range(2):
        with worker(url, tmp_path) as process:
            wait_for_lines(tmp_path, process.pid, 40 + 30 * number)
            process.send_signal(signal.SIGKILL)
            assert process.wait(60) == -signal.SIGKILL
    with worker(url, tmp_path):
        deadline = time.monotonic() + 90
        while sum(count.jobs for count in app.engine.run(looking.counts())):
            assert time.monotonic() < deadline, "jobs were left"
            time.sleep(0.1)
    report = check([tmp_path], app.engine, Options(effects=PAYS))
    app.close()
    assert report.is_clean, report.text()
    assert len(report.history.sources) == 4
    assert report.looked["I5"] == 150
    assert report.looked["I9"] > 0, "nobody was left behind by a kill"


class worker:  # noqa: N801 (read as a verb: with worker(...))
    """A worker process of the shop, killed at the end of the block if it still runs."""

    def __init__(self, url: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.proof.history.shop", url, str(folder), str(os.getpid())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self._process

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(60)


def wait_for_lines(folder: Path, pid: int, wanted: int) -> None:
    """Until that process has written so much of its history."""
    deadline = time.monotonic() + 90
    while sum(len(path.read_bytes().splitlines()) for path in folder.glob(f"{pid}-*{SUFFIX}")) < wanted:
        assert time.monotonic() < deadline, "the worker did nothing"
        time.sleep(0.01)


def test_a_submit_in_the_users_transaction_is_recorded_as_undecided(
    postgres_url: str, tmp_path: Path
) -> None:
    app = shops.shop(postgres_url, tmp_path)
    with psycopg.connect(postgres_url) as connection:
        kept = app.submit_by_name("pay", connection=connection)
    with psycopg.connect(postgres_url) as connection:
        gone = app.submit_by_name("pay", connection=connection)
        connection.rollback()
    report = check([tmp_path], app.engine, Options(drained=False))
    assert report.is_clean, report.text()
    # The first one was tried twice: our own engine is asked where it is when a connection is first compared with it.
    assert [act.kind for act in report.history.by_job[kept.id]] == ["info", "info"]
    assert [act.kind for act in report.history.by_job[gone.id]] == ["info"]
    app.close()


# --- the recorder itself ----------------------------------------------------------------------------------------------


def test_after_a_fork_the_child_writes_a_file_of_its_own(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.effect("j", 1)
    child = os.fork()
    if child == 0:
        recorder.effect("j", 2)
        os._exit(0)
    os.waitpid(child, 0)
    recorder.effect("j", 3)
    recorder.close()
    history = read_history([tmp_path])
    assert len(history.sources) == 2
    assert sorted(act.attempt or 0 for act in history.by_job["j"]) == [1, 2, 3]


def test_what_cannot_be_recorded_does_not_happen(postgres_url: str, tmp_path: Path) -> None:
    """A history on a full disk must not look like a sound one."""
    app = shops.shop(postgres_url, tmp_path)
    recorder = app.engine.recorder  # type: ignore[attr-defined]
    app.submit_by_name("pay")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, recorder._file)
    os.close(full)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            app.engine.run(store.submit([new_job()]))
    assert len(app.engine.inner.run(looking.list_jobs())) == 1  # type: ignore[attr-defined]
    recorder.close()
    app.close()


async def test_a_cancelled_caller_still_leaves_the_end(postgres_url: str, tmp_path: Path) -> None:
    app = shops.shop(postgres_url, tmp_path)
    task = asyncio.create_task(app.engine.arun(store.submit([job := new_job()])))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await app.aclose()
    acts = read_history([tmp_path]).by_job.get(job.id, [])
    assert [act.kind for act in acts] == ["ok"]
