"""Work in the background is beside the jobs: whatever it meets, the queues are served, and somebody learns of it."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fencerow.core.background import loop
from fencerow.core.background.dormant import Dormant
from fencerow.core.background.loop import Fatal, Loop, Loops, WorkerDied
from fencerow.core.background.reaper import JobReaper
from fencerow.core.chore import Chore, Ticking
from fencerow.core.errors import OutOfResources
from fencerow.core.model.ids import new_id
from fencerow.core.model.wanted import Stated
from fencerow.core.store import store
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.plain import Worker
from fencerow.guards.once.window import admit, purge_windows
from fencerow.retention.disowner import Disowner
from fencerow.retention.maintenance import MaintenanceChore
from tests.core.worker.stage import Stage, handler, quick, until, worker_of, working
from tests.kit.jobs import QUEUE, AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.kit.shortage import no_thread


async def one() -> int:
    return 1


class Failing:
    """A chore of a user; `raised` says what its next tick meets."""

    name = "sweep of documents"

    def __init__(self, raised: Callable[[], BaseException | None]) -> None:
        self._raised = raised
        self.ticks = 0

    async def tick(self) -> float:
        self.ticks += 1
        error = self._raised()
        if error is not None:
            raise error
        return 0.01

    async def end(self, within_s: float) -> None:
        raise ZeroDivisionError("at its end")

    def is_for(self, message: object) -> bool:
        raise ZeroDivisionError("when it hears")


def with_chores(engine: AnyEngine, chores: Sequence[Ticking]) -> Worker:
    known = handler(one)
    return Worker(engine, {known.name: known}, {QUEUE: 5}, quick(), Telemetry(), chores=chores)


async def stated(engine: AnyEngine, worker: Worker) -> Stated:
    (found,) = await engine.arun(store.list_workers(holder=worker.holder))
    assert found.stated is not None
    return found.stated


@pytest.mark.parametrize("error", [KeyError("no table"), SystemExit(3), asyncio.CancelledError()], ids=repr)
async def test_a_chore_that_fails_ends_no_queue(
    engine: AnyEngine, error: BaseException, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "FAULT_S", (0.05,))
    broken = True
    chore = Failing(lambda: error if broken else None)
    worker = with_chores(engine, [chore])
    stage = Stage(engine, worker)
    async with worker:
        await until(lambda: chore.ticks >= 3)
        job = await stage.run("one")
        while not (failing := (await stated(engine, worker)).failing):
            await asyncio.sleep(0.05)
        broken = False
        while (await stated(engine, worker)).failing:
            await asyncio.sleep(0.05)

    assert job.state == "succeeded"
    assert (failing[0].name, failing[0].tries >= 1) == ("sweep of documents", True)
    assert failing[0].error
    assert stage.counters.get("loop_faults") >= 3
    assert stage.heard.all(Fact.LOOP_ERROR, loop="sweep of documents")
    assert any(
        "jobs go on meanwhile" in each.message for each in caplog.records if each.levelno >= logging.ERROR
    )
    assert "met an error: at its end" in caplog.text, "the worker signed off all the same"


@pytest.mark.parametrize(
    ("kind", "name"), [(JobReaper, "reaper"), (Disowner, "disowner"), (MaintenanceChore, "maintenance")]
)
async def test_what_looks_after_the_tables_ends_no_worker(
    lite: AnyEngine, kind: type[Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it stumbles over lies in the database: every other worker would end by it in turn."""

    async def bug(_self: object) -> float:
        raise ZeroDivisionError("a bad row")

    monkeypatch.setattr(kind, "tick", bug)
    async with working(lite, one) as stage:
        await stage.heard.wait(Fact.LOOP_ERROR, loop=name)
        assert (await stage.run("one")).state == "succeeded"


async def test_wake_ups_do_not_make_a_failing_chore_hot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "FAULT_S", (3600.0,))
    chore = Failing(lambda: KeyError("again"))
    looped = Loop(chore.name, chore.tick, Telemetry(), background=True)
    running = asyncio.create_task(looped.run())
    await until(lambda: looped.failing is not None)
    for _ in range(200):
        looped.wake()
        await asyncio.sleep(0)
    assert chore.ticks == 1
    looped.stop()

    await asyncio.wait_for(running, PATIENCE_S)


async def test_the_end_does_not_wait_for_the_pause_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "FAULT_S", (3600.0,))
    chore = Failing(lambda: KeyError("again"))
    looped = Loop(chore.name, chore.tick, Telemetry(), background=True)
    running = asyncio.create_task(looped.run())
    await until(lambda: looped.failing is not None)
    looped.stop()

    await asyncio.wait_for(running, PATIENCE_S)


async def test_a_step_of_the_upkeep_that_fails_does_not_keep_the_others_from_theirs(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged: list[str] = []
    known = purge_windows

    def fails(*_given: Any) -> Any:
        raise ZeroDivisionError("a bad row")

    def seen(**options: Any) -> Any:
        purged.append("windows")
        return known(**options)

    monkeypatch.setattr("fencerow.guards.purges.purge_windows", seen)
    engine.run(
        admit("mails", "a", "1", new_id(), window_s=60.0)
    )  # until there is a window, nobody looks for old ones
    upkeep = MaintenanceChore(engine, quick(), Telemetry())
    monkeypatch.setattr(upkeep, "_purge_finished", fails)

    with pytest.raises(ZeroDivisionError):
        await upkeep.round()

    assert purged == ["windows"]


async def test_a_chore_that_sleeps_is_made_by_its_first_tick() -> None:
    made: list[Chore] = []

    class Sweep(Chore):
        name = "sweep"

        async def tick(self) -> float:
            return 7.0

    def make() -> Chore:
        made.append(Sweep())
        return made[-1]

    dormant = Dormant("sweep", pytest.fail, "guards_used", make, every_s=5.0).for_worker()

    assert made == []
    assert [await dormant.tick() for _ in "12"] == [7.0, 7.0]
    assert len(made) == 1


async def test_a_loop_that_comes_after_the_end_does_not_begin() -> None:
    """A chore may be roused by a look that was under way."""
    loops = Loops(Fatal("w", asyncio.get_running_loop()))
    loops.start()
    loops.stop()

    loops.add(Loop("late", asyncio.Event().wait, Telemetry()))  # it is never called

    assert loops.tasks == {}


# --- the core ------------------------------------------------------------------------------------------


async def test_a_core_loop_ends_by_a_cancel_that_nobody_asked_for() -> None:
    """Its task would be over without a word, and the worker would look alive."""

    async def tick() -> float:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="by code outside of the worker"):
        await Loop("x", tick, Telemetry()).run()


async def test_a_shortage_is_waited_out() -> None:
    errors: list[BaseException] = [
        RuntimeError("can't start new thread"),
        MemoryError(),
        OSError(errno.EMFILE, "files"),
    ]

    async def tick() -> float:
        if errors:
            raise errors.pop()
        looped.stop()
        return 60.0

    looped = Loop("x", tick, Telemetry(), endures_s=3600.0)
    await asyncio.wait_for(looped.run(), PATIENCE_S)

    assert errors == []


async def test_a_shortage_that_lasts_for_a_lease_ends_the_worker_with_its_reason(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def short(_self: object) -> float:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Acker, "tick", short)
    with pytest.raises(WorkerDied, match="FR-604"):
        await asyncio.wait_for(worker_of(lite, one, config=quick(lease_s=1.0)).run(), PATIENCE_S)


async def test_a_database_that_is_away_ends_no_loop_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    async def tick() -> float:
        nonlocal tries
        tries += 1
        if tries == 4:
            looped.stop()
        raise ConnectionRefusedError("away")

    looped = Loop("x", tick, Telemetry(), endures_s=0.0)
    await asyncio.wait_for(looped.run(), PATIENCE_S)

    assert tries == 4


async def test_the_driver_hides_what_the_process_is_short_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that the server cannot be reached; whether a descriptor is left tells the two apart."""
    monkeypatch.setattr(loop, "is_out_of_descriptors", lambda: True)

    async def tick() -> float:
        raise ConnectionRefusedError("socket: too many open files")

    with pytest.raises(Exception, match="FR-604"):
        await Loop("x", tick, Telemetry(), endures_s=0.0).run()


async def test_a_job_for_which_there_is_no_thread_goes_back_uncounted(lite: AnyEngine) -> None:
    """Its handler did nothing wrong: it has not even begun."""

    def plain() -> int:
        return 1

    async with working(lite, plain) as stage:
        with no_thread("fencerow-handler"):
            job_id = await stage.submit("plain", attempts_max=1)
            await stage.heard.wait(Fact.RELEASED, job_id=job_id)
        job = await stage.ended(job_id)

    assert (job.state, job.failures) == ("succeeded", 0)


async def test_a_worker_that_cannot_listen_signs_off(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(_callback: object, **_: object) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(engine, "listen", short)
    with pytest.raises(OutOfResources, match="Too many open files"):
        await worker_of(engine, one).start()  # the fixture looks for connections and threads that were left

    (row,) = await engine.arun(store.list_workers())
    assert row.state == "retired"
