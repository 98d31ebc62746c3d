"""What a job has started ends with its child process, also what got away: sessions of their own, daemons."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencerow.processes import child, starting
from tests.core.worker.stage import Stage, until, working
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S, slower
from tests.processes.conftest import settings
from tests.processes.test_children import crew
from tests.processes.test_poison import known, nothing_left

RUNAWAY = Path(__file__).with_name("runaway.py")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to whom they come from")


def left(folder: Path) -> list[int]:
    """Processes that were started with this folder among their arguments."""
    named = os.fsencode(folder)
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if named in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue  # it has ended
    return found


async def run_away(stage: Stage, folder: Path, how: str, end: str) -> str:
    job = await stage.ended(
        await stage.submit(
            "lets_one_run_away",
            {"folder": str(folder), "how": how, "end": end},
            crashes_max=1,
            attempts_max=1,
            timeout_s=slower(3.0) if end == "hang" else None,
        ),
        within_s=PATIENCE_S,
    )
    return job.state.value


@linux
@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("setsid", "sigkill"),
        ("daemon", "sigkill"),
        ("daemon", "returns"),
        ("daemon", "memory"),
        ("daemon", "hang"),
        ("restless", "exit"),
    ],
)
async def test_what_got_away_ends_with_the_child(lite: AnyEngine, tmp_path: Path, how: str, end: str) -> None:
    async with crew(lite, settings(lite, child_jobs_max=1)) as stage:
        state = await run_away(stage, tmp_path, how, end)
        await until(lambda: not left(tmp_path), what="the end of what got away")

    assert state == ("succeeded" if end == "returns" else "failed")
    assert len(known(tmp_path)) >= 1
    await nothing_left(tmp_path)


@linux
async def test_it_lives_on_where_nobody_takes_it_in(
    lite: AnyEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_in = "    _prctl(PR_SET_CHILD_SUBREAPER, 1)\n"
    text = starting.BOOT.read_text()
    assert text.count(taken_in) == 1
    without = tmp_path / "boot.py"
    without.write_text(text.replace(taken_in, ""))
    monkeypatch.setattr(starting, "BOOT", without)
    async with crew(lite, settings(lite, child_jobs_max=1)) as stage:
        await run_away(stage, tmp_path, "daemon", "sigkill")
    (daemon,) = left(tmp_path)

    os.kill(daemon, signal.SIGKILL)
    await until(lambda: not left(tmp_path))


@linux
async def test_what_a_handler_of_the_workers_own_process_started_outlives_both(
    lite: AnyEngine, tmp_path: Path
) -> None:
    def leaves_one() -> None:
        with subprocess.Popen([sys.executable, str(RUNAWAY), str(tmp_path), "daemon"]):
            pass  # a daemon's parent ends at once

    async with working(lite, leaves_one) as stage:
        assert (await stage.run("leaves_one")).state == "succeeded"
    await until(lambda: known(tmp_path) != [], what="the daemon's note")
    (daemon,) = left(tmp_path)

    os.kill(daemon, signal.SIGKILL)
    await until(lambda: not left(tmp_path))


@pytest.mark.parametrize("whom", ["warden", "stopped warden"])
async def test_a_job_that_turns_against_its_warden_is_a_crash_like_any(
    lite: AnyEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whom: str
) -> None:
    monkeypatch.setattr(child, "WARDEN_S", 0.2)
    async with crew(lite, settings(lite)) as stage:
        if whom == "warden":
            given = {"kind": "warden", "folder": str(tmp_path)}
            job_id = await stage.submit("poisonous", given, crashes_max=1)
        else:
            given = {"folder": str(tmp_path), "how": "ignores"}
            job_id = await stage.submit("hangs", given, timeout_s=1.0, attempts_max=1)
            await until(lambda: len(known(tmp_path)) == 2, 60)
            (warden,) = stage.worker._parts.dispatch._apart._children.pids
            os.kill(warden, signal.SIGSTOP)
        job = await stage.ended(job_id, within_s=PATIENCE_S)
        await nothing_left(tmp_path)

    assert job.state == "failed"
    assert ("SIGKILL" in job.error["message"]) == (whom == "warden")


async def test_a_service_manager_that_tells_everybody_to_end_ends_no_job(
    lite: AnyEngine, tmp_path: Path
) -> None:
    """systemd does by default: the worker hears it too, and lets its jobs end."""
    async with crew(lite, settings(lite)) as stage:
        job_id = await stage.submit("waits", {"folder": str(tmp_path)})
        await until(lambda: len(known(tmp_path)) == 2, 60)
        for pid in known(tmp_path):
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        (tmp_path / "go").touch()
        job = await stage.ended(job_id)

    assert (job.state, job.attempt, job.crashes) == ("succeeded", 1, 0)
