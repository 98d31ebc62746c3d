"""Part A of the four systems: flydocs, rebuilt in flydocs.py, at the level of the library."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencerow import JobFailed, JobNotFound, ResultTimeout, State
from fencerow.client import CancelAnswer
from fencerow.core.client.handle import Handle
from fencerow.core.model.ids import new_id
from fencerow.errors import IllegalMove
from tests.kit.pace import PATIENCE_S, slower
from tests.whole.systems import flydocs
from tests.whole.systems.outside import until
from tests.whole.systems.stage import QUICK, STEADY, Stage

# What a machine with other work to do may add to a bound; a recovery that does not happen exceeds any.
ALLOWANCE_S = slower(60.0)
SYSTEM = flydocs  # which `stage` opens


@pytest.mark.scenario("A.3")
async def test_of_four_cancels_and_four_claims_exactly_one_wins(stage: Stage) -> None:
    """Four workers take forty jobs from the front, four threads cancel each of them from the back.

    Where they meet, all eight go for one queued job; before and after that one side comes first.
    """
    await stage.open(prefetch_s=0)  # a claim takes one job, so that none is out of the cancels' reach early
    handles = [await flydocs.extract.asubmit(f"document {number}") for number in range(40)]

    def cancel_all() -> list[str]:
        return [handle.id for handle in reversed(handles) if cancelled(handle)]

    workers = [flydocs.app.worker(slots=1, name=f"w{number}") for number in range(4)]
    working = [asyncio.create_task(worker.run(until_idle=True)) for worker in workers]
    await until(flydocs.model.calls, "the first run")
    cancels = await asyncio.gather(*(asyncio.to_thread(cancel_all) for _ in range(4)))
    await asyncio.gather(*working)

    won_by_cancel = [job_id for wins in cancels for job_id in wins]
    won_by_claim = flydocs.model.calls()
    assert won_by_cancel and won_by_claim, "one side was never first"
    for number, handle in enumerate(handles):
        wins = won_by_cancel.count(handle.id) + won_by_claim.count(f"document {number}")
        assert wins == 1
        expected = State.CANCELLED if handle.id in won_by_cancel else State.SUCCEEDED
        assert await handle.astatus() is expected


@pytest.mark.prove
@pytest.mark.scenario("A.4")
@pytest.mark.timed
async def test_a_claim_with_a_fresh_lease_stands_and_one_with_an_old_lease_is_reclaimed(
    stage: Stage, tmp_path: Path
) -> None:
    """The first holder's lease is 300 s. Ten minutes pass for the database: its claim is stale and taken over.

    A worker judges others once its own renewals went well for a whole lease of its own.
    """
    lease_s = slower(3.0)
    await stage.open(lease_s=lease_s, renew_s=0.2)
    flydocs.model.script("hang", "ok")
    handle = await flydocs.extract.asubmit("contract")
    with stage.process(tmp_path / "first.log", lease_s=300) as first:
        await until(flydocs.model.calls, "the first claim")
        async with flydocs.app.worker() as second:
            await until(lambda: stage.age_s(second.holder) > lease_s + 5 * QUICK["sweep_s"])
        assert flydocs.model.pids() == [first.pid], "claimed a second time within the lease"

        await stage.freeze(first)
        stage.pass_time(600)
        async with flydocs.app.worker():
            assert await handle.aresult(timeout_s=PATIENCE_S) == "pages of contract"

    job = await handle.arefresh()
    assert (job.attempt, job.failures) == (2, 0)
    assert flydocs.model.pids() == [first.pid, os.getpid()]


@pytest.mark.scenario("A.6")
async def test_ten_concurrent_submits_under_one_key_are_one_job(stage: Stage) -> None:
    """Four threads, two tasks, and two processes with two threads each; each gets the id (over HTTP a 202)."""
    submits = flydocs.extract.using(key="request-1")
    others = [_submitting_process() for _ in range(2)]
    for other in others:
        assert other.stdout is not None and other.stdout.readline() == "ready\n"

    for other in others:
        assert other.stdin is not None
        other.stdin.write("go\n")
        other.stdin.flush()
    here = await asyncio.gather(
        *(asyncio.to_thread(submits.submit, "invoice") for _ in range(4)),
        *(submits.asubmit("invoice") for _ in range(2)),
    )
    there = [await asyncio.to_thread(other.communicate, timeout=PATIENCE_S) for other in others]
    await stage.work()

    assert [other.returncode for other in others] == [0, 0]
    ids = [handle.id for handle in here] + [line for out, _ in there for line in out.split()]
    assert len(ids) == 10 and len(set(ids)) == 1
    (job,) = await flydocs.app.client.alist_jobs()
    assert (job.id, job.state) == (ids[0], State.SUCCEEDED)
    assert flydocs.model.calls() == ["invoice"]


@pytest.mark.scenario("A.7")
@pytest.mark.timed
async def test_a_job_whose_worker_was_killed_is_back_within_lease_and_sweep(
    stage: Stage, tmp_path: Path
) -> None:
    lease_s, sweep_s = slower(3.0), 0.5
    settings = {"lease_s": lease_s, "renew_s": 0.2, "sweep_s": sweep_s}
    flydocs.model.script("hang", "ok")
    with (
        stage.process(tmp_path / "one.log", **settings) as one,
        stage.process(tmp_path / "other.log", **settings) as other,
    ):
        await until(lambda: _count_older_than(stage, lease_s) == 2, "two workers that may judge")
        handle = await flydocs.extract.asubmit("report")
        await until(flydocs.model.calls, "the first attempt")
        (holder,) = flydocs.model.pids()
        killed_us = stage.now_us()
        os.kill(holder, signal.SIGKILL)

        assert await handle.aresult(timeout_s=PATIENCE_S) == "pages of report"

    job = await handle.arefresh()
    assert job.state is State.SUCCEEDED and job.attempt == 2
    assert set(flydocs.model.pids()) == {one.pid, other.pid}
    (reclaimed,) = stage.happenings(handle, "reclaimed")
    assert (reclaimed.at_us - killed_us) / 1e6 <= lease_s + sweep_s + ALLOWANCE_S


@pytest.mark.scenario("A.8")
async def test_a_retry_happens_at_its_due_time_though_its_worker_was_killed(
    stage: Stage, tmp_path: Path
) -> None:
    flydocs.model.script("runtime error", "ok")
    with stage.process(tmp_path / "worker.log") as worker:
        handle = await flydocs.extract.asubmit("letter")
        await until(lambda: stage.happenings(handle, "retried"), "the first failure")
        worker.kill()
        worker.wait()

    due_us = (await handle.arefresh()).run_at_us
    stage.pass_until(due_us - 1_000_000)
    await stage.work()  # finds nothing, unless this took longer than the second that is left

    stage.pass_until(due_us)
    await stage.work()
    job = await handle.arefresh()
    assert job.state is State.SUCCEEDED and job.attempt == 2
    assert job.claimed_at_us is not None and job.claimed_at_us >= due_us, "it ran before it was due"


@pytest.mark.scenario("A.11")
async def test_a_value_error_ends_a_job_at_once(stage: Stage) -> None:
    flydocs.model.script("value error")
    handle = await flydocs.extract.asubmit("scribble")

    await stage.work()

    job = await handle.arefresh()
    assert (job.state, job.attempt, job.failures) == (State.FAILED, 1, 1)
    with pytest.raises(JobFailed, match="ValueError") as caught:
        await handle.aresult(timeout_s=PATIENCE_S)
    assert caught.value.error.code == "permanent_error"


@pytest.mark.scenario("A.11")
async def test_a_runtime_error_is_tried_three_times_after_5_and_10_seconds(stage: Stage) -> None:
    await stage.open(**STEADY)
    flydocs.model.script("runtime error")
    handle = await flydocs.extract.asubmit("scan")

    delays = await _delays_until_failed(stage, handle)

    assert (await handle.arefresh()).attempt == 3
    assert_delays(delays, [5, 10])
    with pytest.raises(JobFailed) as caught:
        await handle.aresult(timeout_s=PATIENCE_S)
    assert caught.value.error.code == "attempts_exhausted"


@pytest.mark.scenario("A.11")
async def test_delays_are_capped_at_300_seconds(stage: Stage) -> None:
    await stage.open(**STEADY)
    flydocs.model.script("runtime error")
    handle = await flydocs.extract.using(attempts_max=9).asubmit("scan")

    assert_delays(await _delays_until_failed(stage, handle), [5, 10, 20, 40, 80, 160, 300, 300])


@pytest.mark.scenario("A.13")
async def test_what_a_cancel_and_an_early_question_are_told(stage: Stage) -> None:
    """Over HTTP these are 200, 409, 404 and 409."""
    queued = await flydocs.extract.using(delay_s=60).asubmit("draft")
    assert await queued.acancel() is CancelAnswer.CANCELLED
    assert await queued.astatus() is State.CANCELLED

    flydocs.model.script("hang")
    running = await flydocs.extract.asubmit("deed")
    async with flydocs.app.worker():
        await until(flydocs.model.calls, "the run")
        with pytest.raises(IllegalMove) as refused:
            await running.acancel(only_queued=True)
        assert refused.value.state == State.RUNNING
        with pytest.raises(ResultTimeout):
            await running.aresult(timeout_s=0.05)
        assert await running.astatus() is State.RUNNING, "the refusals left no trace"

        assert await running.acancel(reason="changed my mind") is CancelAnswer.REQUESTED
        await flydocs.app.client.await_ended(running.id, timeout_s=PATIENCE_S)
    assert await running.astatus() is State.CANCELLED

    with pytest.raises(JobNotFound):
        await flydocs.app.client.acancel(new_id())


@pytest.mark.prove
@pytest.mark.scenario("A.15")
@pytest.mark.timed
async def test_each_orphan_runs_once_though_four_reapers_find_it_at_once(
    stage: Stage, tmp_path: Path
) -> None:
    await stage.open(lease_s=slower(3.0), renew_s=0.2)
    orphans = [f"orphan {number}" for number in range(6)]
    flydocs.model.script(*["hang"] * len(orphans), "ok")
    handles = [await flydocs.extract.asubmit(orphan) for orphan in orphans]
    with stage.process(tmp_path / "dead.log", lease_s=30):
        await until(lambda: len(flydocs.model.calls()) == len(orphans), "the first attempts")
    stage.pass_time(600)

    reapers = [flydocs.app.worker(name=f"reaper {number}") for number in range(4)]
    await asyncio.gather(*(reaper.start() for reaper in reapers))
    await asyncio.gather(*(handle.aresult(timeout_s=PATIENCE_S) for handle in handles))
    await asyncio.gather(*(reaper.stop() for reaper in reapers))

    assert sorted(flydocs.model.calls()) == sorted(orphans * 2), "one run before the death, one after"
    # On a busy machine one may be handed back before it began, which takes a number too.
    handed_back = [len(stage.happenings(handle, "released")) for handle in handles]
    attempts = [(await handle.arefresh()).attempt for handle in handles]
    assert attempts == [2 + count for count in handed_back]
    assert [len(stage.happenings(handle, "reclaimed")) for handle in handles] == [1] * len(orphans)


# --- short ways ---------------------------------------------------------------------------------------


def cancelled(handle: Handle[str]) -> bool:
    """Cancel as flydocs does: only what nobody runs."""
    try:
        return handle.cancel(only_queued=True) is CancelAnswer.CANCELLED
    except IllegalMove:
        return False


def assert_delays(found_s: list[float], least_s: list[float]) -> None:
    """Each delay is its least, plus up to 20 %."""
    assert len(found_s) == len(least_s)
    for found, least in zip(found_s, least_s, strict=True):
        assert least <= found <= least * 1.2 + 0.001


async def _delays_until_failed(stage: Stage, handle: Handle[str]) -> list[float]:
    """Go from one attempt to the next; each delay counts from the failure to `run_at`."""
    delays: list[float] = []
    async with flydocs.app.worker():
        while not (job := await stage.attempted(handle, len(delays) + 1)).is_final:
            delays.append(stage.delay_s(handle, "retried"))
            stage.pass_until(job.run_at_us)
    assert job.state is State.FAILED
    return delays


def _count_older_than(stage: Stage, age_s: float) -> int:
    return sum(stage.age_s(worker.id) > age_s for worker in stage.living_workers())


SUBMIT_TWICE = """
import sys, threading
from tests.whole.systems.flydocs import app, extract
app.check_or_create()
print("ready", flush=True)
sys.stdin.readline()
submit = lambda: print(extract.using(key="request-1").submit("invoice").id + "\\n", end="", flush=True)
threads = [threading.Thread(target=submit) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
app.close()
"""


def _submitting_process() -> subprocess.Popen[str]:
    """Another process that submits twice at once when told; it prints the ids."""
    return subprocess.Popen(
        [sys.executable, "-c", SUBMIT_TWICE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
