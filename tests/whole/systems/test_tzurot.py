"""Part C of the four systems: Tzurot, rebuilt in tzurot.py, at the level of the library."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fencerow import App, Database, JobFailed, ResultTimeout, State, Unavailable
from fencerow.core.model.ids import new_id
from fencerow.errors import Busy, HandoverNotFound
from fencerow.guards.once import DedupeWindow
from fencerow.handovers.handovers import purge
from fencerow.retention.purging import purge_by_own_age
from tests.kit.pace import PATIENCE_S, slower
from tests.kit.plainly import plainly
from tests.whole.systems import tzurot
from tests.whole.systems.outside import Step, until
from tests.whole.systems.stage import ROOT, STEADY, Stage
from tests.whole.systems.tzurot import BUSY, CENSORED, POSTS_S

HOUR_S = 3600.0
SYSTEM = tzurot  # which `stage` opens


def posted(stage: Stage, channel: str = "room") -> tuple[str, bool]:
    """A post as the web service makes it, in a transaction of its own."""

    def post() -> tuple[str, bool]:
        with stage.connected() as db:
            return tzurot.post("Lilith", channel, "hello", db)

    return plainly(post)


@pytest.mark.scenario("C.2")
async def test_two_identical_posts_within_the_window_are_one_job(stage: Stage) -> None:
    first, second = posted(stage), posted(stage)
    elsewhere = posted(stage, "another room")
    stage.pass_time(POSTS_S + 1)
    later = posted(stage)

    assert (first[1], second) == (True, (first[0], False))
    assert elsewhere[1] and later[1]
    assert {job.id for job in await tzurot.app.client.alist_jobs()} == {first[0], elsewhere[0], later[0]}


@pytest.mark.scenario("C.2")
async def test_a_post_whose_job_was_not_submitted_blocks_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken, pytest.raises(ConnectionError):
        broken.setattr(tzurot, "answer", Refusing())
        posted(stage)

    assert posted(stage)[1]
    assert len(await tzurot.app.client.alist_jobs()) == 1


class Refusing:
    def using(self, **_: object) -> None:
        raise ConnectionError("the queue is away")


@pytest.mark.scenario("C.2")
async def test_a_kill_between_admission_and_submit_loses_no_post(stage: Stage) -> None:
    killed_in(stage, "transaction")

    answer, is_new = posted(stage)

    assert is_new, "it was told of a job that never came"
    assert [job.id for job in await tzurot.app.client.alist_jobs()] == [answer]


async def test_by_the_block_it_is_lost_until_the_window_ends(stage: Stage) -> None:
    """The control: there the admission is committed before the submit. The guide says so."""
    killed_in(stage, "block")

    assert not posted(stage)[1] and await tzurot.app.client.alist_jobs() == []
    stage.pass_time(POSTS_S + 1)
    assert posted(stage)[1]


def killed_in(stage: Stage, form: str) -> None:
    """Another process posts the same, and SIGKILL ends it between admission and submit."""
    stage.app.check_or_create()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.whole.systems.poster", form]
    ended = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "admitted\n"), ended.stderr


@pytest.mark.scenario("C.3")
async def test_without_the_dedupe_store_a_post_is_refused_in_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP 503. On SQLite the store is away when a stranger holds the file."""
    with stage.connected() as db, monkeypatch.context() as away:
        where: App | Database = stage.app
        if stage.app.engine.dialect == "sqlite":
            db.execute("BEGIN IMMEDIATE")
        else:
            where = Database("postgresql://nobody@127.0.0.1:1/nothing")
        away.setattr(tzurot, "posts", DedupeWindow(where, "posts", POSTS_S, timeout_s=1.0))
        began = time.monotonic()
        with pytest.raises((Unavailable, Busy)):
            posted(stage)
        assert time.monotonic() - began < PATIENCE_S

    assert await tzurot.app.client.alist_jobs() == []
    assert posted(stage)[1]
    assert len(await tzurot.app.client.alist_jobs()) == 1


@pytest.mark.scenario("C.4")
async def test_after_a_kill_the_same_job_runs_once_more_and_no_other_for_its_message(
    stage: Stage, tmp_path: Path
) -> None:
    """The message's key belongs to the job itself, so its second run is no duplicate; a second post is."""
    await stage.open(lease_s=slower(3.0), renew_s=0.2)
    tzurot.llm.script("hang", "ok")
    handle = plainly(tzurot.receive, "message-1", "hello")
    with stage.process(tmp_path / "killed.log", lease_s=300):
        await until(tzurot.llm.calls, "the first run")
    again = plainly(tzurot.receive, "message-1", "hello")
    stage.pass_time(300)

    async with tzurot.app.worker():
        assert (await handle.aresult(timeout_s=PATIENCE_S)).success

    assert (again.id, again.replay) == (handle.id, True)
    assert tzurot.llm.calls() == ["hello", "hello"]
    assert len(await tzurot.app.client.alist_jobs()) == 1


@pytest.mark.scenario("C.4")
async def test_a_killed_job_is_no_duplicate_of_itself_and_another_for_its_message_is(
    stage: Stage, tmp_path: Path
) -> None:
    """The guard stands in the handler: its owner is the job, wherever and however often it runs."""
    await stage.open(lease_s=slower(3.0), renew_s=0.2)
    tzurot.llm.script("hang", "ok")
    killed = await tzurot.reply.asubmit("message-1", "hello")
    with stage.process(tmp_path / "killed.log", lease_s=300):
        await until(tzurot.llm.calls, "the first run")
    stage.pass_time(300)

    async with tzurot.app.worker():
        assert await killed.aresult(timeout_s=PATIENCE_S) == "reply of hello"
        another = await tzurot.reply.asubmit("message-1", "hello")
        assert await another.aresult(timeout_s=PATIENCE_S) == "reply of hello"

    assert tzurot.llm.calls() == ["hello", "hello"]


@pytest.mark.prove
@pytest.mark.scenario("C.5")
@pytest.mark.timed
async def test_a_handler_longer_than_its_lease_runs_once_while_its_process_lives(
    stage: Stage, tmp_path: Path
) -> None:
    """The handler takes three leases. Another worker looks for the dead all the while and may judge."""
    lease_s = slower(3.0)
    await stage.open(lease_s=lease_s, renew_s=0.3)
    tzurot.llm.script("hang")
    with stage.process(tmp_path / "slow.log", lease_s=lease_s, renew_s=0.3) as slow:
        handle = await tzurot.answer.asubmit("a long story")
        await until(tzurot.llm.calls, "the run")
        async with tzurot.app.worker():
            began = time.monotonic()
            await until(lambda: time.monotonic() > began + 3 * lease_s)
            assert (await handle.arefresh()).attempt == 1
            tzurot.llm.release()
            reply = await handle.aresult(timeout_s=PATIENCE_S)

    assert reply == tzurot.Reply(True, "reply of a long story")
    assert tzurot.llm.pids() == [slow.pid]
    assert [each.kind for each in await tzurot.app.client.atimeline(handle.id)] == [
        "submitted",
        "claimed",
        "succeeded",
    ]


@pytest.mark.scenario("C.7")
@pytest.mark.parametrize("trouble", [429, 500, 503, "timeout"])
async def test_trouble_that_passes_is_tried_three_times(stage: Stage, trouble: Step) -> None:
    await stage.open(**STEADY)
    tzurot.llm.script(trouble)
    handle = await tzurot.answer.asubmit("hello")

    async with tzurot.app.worker():
        for attempt, delay_s in ((1, 2), (2, 4)):
            job = await stage.attempted(handle, attempt)
            assert stage.delay_s(handle, "retried") == pytest.approx(delay_s, abs=0.001)
            stage.pass_until(job.run_at_us)
        job = await stage.attempted(handle, 3)

    assert (job.state, job.failures) == (State.FAILED, 3)
    assert tzurot.llm.calls() == ["hello"] * 3


@pytest.mark.scenario("C.7")
@pytest.mark.parametrize("refusal", [400, 401, 404])
async def test_a_refusal_is_not_tried_again(stage: Stage, refusal: int) -> None:
    tzurot.llm.script(refusal)
    handle = await tzurot.answer.asubmit("hello")

    await stage.work()

    with pytest.raises(JobFailed, match=str(refusal)):
        await handle.aresult(timeout_s=PATIENCE_S)
    assert tzurot.llm.calls() == ["hello"]


@pytest.mark.scenario("C.7")
async def test_a_business_failure_is_delivered_as_a_result(stage: Stage) -> None:
    tzurot.llm.script(CENSORED)
    handle = await tzurot.answer.asubmit("something rude")

    await stage.work()

    assert await handle.aresult(timeout_s=PATIENCE_S) == tzurot.Reply(
        False, "the provider will not answer this"
    )
    assert tzurot.llm.calls() == ["something rude"]


@pytest.mark.scenario("C.8")
async def test_a_result_that_comes_after_the_notice_is_delivered_once_as_a_follow_up(stage: Stage) -> None:
    """After 18 minutes those behind it wait no longer; the bot says that it takes longer, and the result comes once."""
    await stage.open(**STEADY)
    tzurot.llm.script("hang", "ok")
    room: dict[str, list[str]] = {}
    async with tzurot.app.worker():
        slow = await tzurot.converse.asubmit("room", "a long story")
        await until(tzurot.llm.calls, "the first call")
        quick = await tzurot.converse.asubmit("room", "hello")
        await tzurot.app.client.await_ended(quick.id, timeout_s=PATIENCE_S)
        await tzurot.deliver(room)
        assert room == {}, "it went past an older message"

        stage.pass_time(18 * 60 + 1)
        await tzurot.deliver(room)
        tzurot.llm.release()
        await tzurot.app.client.await_ended(slow.id, timeout_s=PATIENCE_S)
        await tzurot.deliver(room)
        await tzurot.deliver(room)

    assert room == {"room": ["reply of hello", "reply of a long story"]}


@pytest.mark.scenario("C.8")
async def test_a_cancelled_older_message_frees_the_newer_ones(stage: Stage) -> None:
    older = await tzurot.converse.using(delay_s=HOUR_S).asubmit("room", "never mind")
    newer = await tzurot.converse.asubmit("room", "hello")
    await stage.work()
    room: dict[str, list[str]] = {}
    await tzurot.deliver(room)
    assert room == {} and await newer.astatus() is State.SUCCEEDED

    await tzurot.app.client.acancel(older.id)
    await tzurot.deliver(room)

    assert room == {"room": ["cancelled", "reply of hello"]}


@pytest.mark.scenario("C.9")
async def test_confirming_twice_says_so_and_only_what_is_confirmed_goes(stage: Stage) -> None:
    """Over HTTP an unknown id is a 404. After a day what was confirmed is gone; what was not is there."""
    first, second = [await tzurot.converse.asubmit(room, "hello") for room in ("room", "another room")]
    await stage.work()
    bot = tzurot.app.client.handovers("bot")

    answers = [(await bot.aconfirm(first.id)).replay, (await bot.aconfirm(first.id)).replay]
    with pytest.raises(HandoverNotFound) as unknown:
        await bot.aconfirm(new_id())
    stage.pass_time(25 * HOUR_S)
    await stage.app.engine.arun(purge_by_own_age(limit=10))
    await stage.app.engine.arun(purge(0, age_s=24 * HOUR_S, limit=10))

    assert (answers, unknown.value.code) == ([False, True], "FR-831")
    assert await tzurot.app.client.alist_jobs() == []
    with pytest.raises(HandoverNotFound):
        await bot.aconfirm(first.id)
    (kept,) = await bot.atake(10)
    assert (kept.job_id, kept.result["text"]) == (second.id, "reply of hello")


@pytest.mark.scenario("C.10")
async def test_a_job_may_snooze_48_times_and_then_fails_with_a_clear_code(stage: Stage) -> None:
    """The snoozes cost nothing of the attempts' budget; the number of the attempt, a fence, counts every claim."""
    await stage.open(**STEADY)
    tzurot.site.script(BUSY)
    handle = await tzurot.fetch.asubmit("Lilith")

    async with tzurot.app.worker():
        for snoozes in range(1, 49):
            job = await stage.attempted(handle, snoozes)
            assert (job.state, job.snoozes, job.failures) == (State.QUEUED, snoozes, 0)
            assert stage.delay_s(handle, "snoozed") == pytest.approx(HOUR_S / 2, abs=0.001)
            stage.pass_until(job.run_at_us)
        job = await stage.attempted(handle, 49)

    assert job.state is State.FAILED
    with pytest.raises(JobFailed, match="snoozed 48 times") as caught:
        await handle.aresult(timeout_s=PATIENCE_S)
    assert caught.value.error.code == "snoozes_exhausted"


@pytest.mark.scenario("C.11")
async def test_a_job_older_than_12_hours_at_pick_up_expires(stage: Stage) -> None:
    too_old = await tzurot.answer.asubmit("good morning")
    stage.pass_time(60)
    young = await tzurot.answer.asubmit("good night")
    stage.pass_time(12 * HOUR_S - 30)

    await stage.work()

    assert tzurot.llm.calls() == ["good night"]
    assert (await young.aresult(timeout_s=PATIENCE_S)).success
    job = await tzurot.app.client.await_ended(too_old.id, timeout_s=PATIENCE_S)
    assert (job.state, job.attempt) == (State.FAILED, 0)
    with pytest.raises(JobFailed) as caught:
        await too_old.aresult(timeout_s=PATIENCE_S)
    assert caught.value.error.code == "expired"


@pytest.mark.scenario("C.12")
@pytest.mark.parametrize(("images", "recordings", "timeout_s"), [(0, 0, 495), (5, 0, 768), (0, 1, 1200)])
async def test_how_long_a_job_may_run_depends_on_what_it_must_look_at(
    stage: Stage, images: int, recordings: int, timeout_s: float
) -> None:
    """The formula is the application's; each job is stored, and bounded, with its own limit."""
    handle = plainly(tzurot.receive, "message-1", "look", images, recordings)

    assert (await handle.arefresh()).timeout_s == timeout_s


@pytest.mark.scenario("C.16")
async def test_waiting_survives_a_failed_attempt_and_a_restart(stage: Stage) -> None:
    tzurot.llm.script(503, "hang", "ok")
    handle = await tzurot.answer.asubmit("are you there?")
    waiting = asyncio.create_task(handle.aresult(timeout_s=PATIENCE_S))

    await stage.work()
    job = await handle.arefresh()
    assert (job.state, job.failures) == (State.QUEUED, 1)
    stage.pass_until(job.run_at_us)
    restarted = tzurot.app.worker()
    await restarted.start()
    await until(lambda: len(tzurot.llm.calls()) == 2, "the second attempt")
    await restarted.stop(now=True)
    assert not waiting.done()
    await stage.work()

    assert await waiting == tzurot.Reply(True, "reply of are you there?")
    assert (await handle.arefresh()).failures == 1, "a restart is no failure"


@pytest.mark.scenario("C.16")
async def test_waiting_for_a_finished_job_returns_its_result(stage: Stage) -> None:
    """Also through a handle made from the id alone, as another process would."""
    handle = await tzurot.answer.asubmit("hello")
    await stage.work()

    known_by_id = tzurot.app.client.handle(handle.id)
    assert await handle.aresult(timeout_s=PATIENCE_S) == tzurot.Reply(True, "reply of hello")
    assert await known_by_id.aresult(timeout_s=PATIENCE_S) == {"success": True, "text": "reply of hello"}


@pytest.mark.scenario("C.16")
async def test_waiting_times_out_cleanly(stage: Stage) -> None:
    """The caller is told that the job goes on, and it does."""
    handle = await tzurot.answer.asubmit("hello")

    with pytest.raises(ResultTimeout):
        await handle.aresult(timeout_s=0.05)

    await stage.work()
    assert (await handle.aresult(timeout_s=PATIENCE_S)).success


@pytest.mark.scenario("C.17")
async def test_a_second_export_while_one_is_active_is_refused(stage: Stage) -> None:
    """Over HTTP the replay is a 409, also for the rest of the day; then the key is free."""
    with stage.connected() as db:
        first = tzurot.request_export("ada", db)
    with stage.connected() as db:
        assert tzurot.request_export("ada", db).replay
    await stage.work()
    stage.pass_time(23 * HOUR_S)
    with stage.connected() as db:
        assert tzurot.request_export("ada", db).replay
    stage.pass_time(HOUR_S)
    with stage.connected() as db:
        next_day = tzurot.request_export("ada", db)

    assert not first.replay and not next_day.replay
    assert first.id != next_day.id


@pytest.mark.scenario("C.17")
async def test_an_export_that_was_not_enqueued_blocks_nobody(stage: Stage) -> None:
    with stage.connected() as db:
        lost = tzurot.request_export("ada", db)
        db.rollback()

    with stage.connected() as db:
        export = tzurot.request_export("ada", db)
    await stage.work()

    assert not export.replay and export.id != lost.id
    assert await export.aresult(timeout_s=PATIENCE_S) == "pages of ada"
    assert tzurot.site.calls() == ["ada"]
