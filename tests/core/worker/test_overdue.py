"""An attempt is ended for running too long only where its own worker says so, and never what has not begun."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec import structs

from fencerow.core.model.wanted import OverdueAttempt
from fencerow.core.store import store
from fencerow.core.worker import roster as module
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.roster import Roster
from fencerow.db.clock import CarriedClock
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators import looking
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import handler, job_of, quick, until, working
from tests.core.worker.test_parts import claimed, noop
from tests.kit.jobs import AnyEngine, read
from tests.kit.pace import slower

LEASE_S = slower(6.0)  # nobody loses it, and some wait for a whole one
CONFIG = quick(lease_s=LEASE_S, prefetch_s=0.0, child_start_s=0.5)


class Scene:
    """One attempt with a limit of 10 s and a margin of 5, in a worker with a lease of 30 s."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, timeout_s: float | None = 10.0) -> None:
        self.now = 1000.0
        fake = type("Time", (), {"monotonic": staticmethod(lambda: self.now)})
        monkeypatch.setattr(module, "time", fake)
        self.attempt = Attempt(
            structs.replace(claimed(), timeout_s=timeout_s), "holder", handler(noop), taken=1000.0
        )
        lease = WorkerLease(30.0, 1.0)
        self.roster = Roster(lease, CarriedClock(), started_least=1, suspects_max=1, margin_s=5.0)
        self.roster.take(self.attempt)

    def begin(self) -> None:
        assert self.attempt.starts()
        self.attempt.begin(lambda _: None, lambda: None, kill_s=1.0)
        self.attempt.started = self.now

    def looks(self, *seconds: float) -> list[bool | None]:
        """At each of these seconds: nothing said, or overdue and whether it had begun."""
        found: list[bool | None] = []
        for each in seconds:
            self.now = 1000.0 + each
            said = self.roster.overdue()
            assert said in ((), (OverdueAttempt(*self.attempt.key, begun=bool(said and said[0].begun)),))
            found.append(said[0].begun if said else None)
        return found


def test_what_is_not_over_a_lease_after_it_was_seen_past_its_limit_is_overdue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch)
    scene.begin()

    assert scene.looks(14, 16, 45, 46.1) == [None, None, None, True]


def test_the_lease_counts_from_a_look_lest_a_worker_that_was_stopped_wakes_up_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch)
    scene.begin()

    assert scene.looks(3600, 3629, 3631) == [None, None, True]


def test_what_is_over_waits_for_its_outcome_to_be_written_and_is_never_overdue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch)
    scene.begin()
    assert scene.looks(16) == [None]
    scene.attempt.finish()

    assert scene.looks(50, 100, 3600) == [None, None, None]


def test_what_has_no_limit_is_never_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, timeout_s=None)
    scene.begin()

    assert scene.looks(16, 3600, 7200) == [None, None, None]


def test_what_did_not_begin_for_as_long_is_withdrawn_and_never_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch)

    assert scene.looks(16, 47, 48) == [None, False, False]
    assert not scene.attempt.starts()


def test_what_starts_between_two_looks_is_not_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    assert scene.looks(16) == [None]
    assert scene.attempt.starts()

    assert not scene.attempt.withdraw()
    assert scene.attempt.starts()


# --- in workers --------------------------------------------------------------------------------------


# Back in time: test_carried.py has a holder that died before, and tests/proof/race plays the judges.
@pytest.mark.parametrize("jump_s", [3600.0, pytest.param(-3600.0, marks=pytest.mark.prove)])
async def test_healthy_jobs_go_on_when_the_clock_jumps(
    engine: AnyEngine, clock: DatabaseClock, jump_s: float
) -> None:
    """A server's clock that was set, or a laptop that slept: nobody has run for too long, and nobody is dead."""
    ends, begun = asyncio.Event(), []

    async def works() -> str:
        begun.append(1)
        await ends.wait()
        return "done"

    async def other() -> None: ...

    async with (
        working(engine, works, config=CONFIG) as stage,
        working(engine, other, queues={"other": 1}, config=CONFIG) as judge,
    ):
        jobs = [await stage.submit("works", timeout_s=900.0, attempts_max=1) for _ in range(5)]
        await until(lambda: len(begun) == 5 and _may_judge(stage) and _may_judge(judge))
        holders = stage.worker.holder, judge.worker.holder
        clock.advance(jump_s)
        await until(lambda: not _may_judge(stage) and not _may_judge(judge), what="the jump was seen")
        await until(lambda: _may_judge(stage) and _may_judge(judge), what="both may judge again")
        sweeps = len(judge.heard.all("renewed"))
        await judge.heard.wait("renewed", sweeps + 5)
        ends.set()
        found = [await stage.ended(job_id) for job_id in jobs]

        assert {(job.state, job.attempt, job.failures) for job in found} == {("succeeded", 1, 0)}
        assert (stage.worker.holder, judge.worker.holder) == holders
        assert len(begun) == 5


async def test_what_waits_behind_a_blocked_loop_runs_elsewhere_and_counts_nothing(engine: AnyEngine) -> None:
    free, blocked, ran = threading.Event(), threading.Event(), []

    async def blocks() -> None:
        blocked.set()
        free.wait(60)

    async def innocent() -> None:
        ran.append(threading.current_thread().name)

    submitted = [job_of("blocks", priority=5), job_of("innocent", timeout_s=0.1, attempts_max=1)]
    await engine.arun(store.submit(submitted))
    job_id = submitted[1].id
    with _elsewhere(engine, blocks, innocent) as stopped:
        await until(blocked.is_set)
        assert read(engine, job_id).state == "running"
        async with working(engine, innocent, config=CONFIG) as stage:
            found = await stage.ended(job_id)
            kinds = [each.kind for each in await engine.arun(looking.events(job_id))]
            free.set()
            await asyncio.to_thread(stopped.wait)

    assert (found.state, found.attempt, found.failures, found.suspect) == ("succeeded", 2, 0, False)
    assert kinds == ["released"]
    assert ran == ["MainThread"]


def _may_judge(stage) -> bool:  # type: ignore[no-untyped-def]
    held: bool = stage.worker._parts.lease.may_judge()
    return held


def _twin(engine: AnyEngine) -> AnyEngine:
    """Another engine on the same database, for another event loop."""
    if isinstance(engine, PostgresEngine):
        return PostgresEngine(engine.conninfo, engine.queries)
    return SqliteEngine(engine.path, engine.queries, clock=engine.clock)


@contextmanager
def _elsewhere(engine: AnyEngine, *functions) -> Iterator[threading.Event]:  # type: ignore[no-untyped-def]
    """A worker in a thread with an event loop of its own; the event is set when all that it held is over."""
    leave, over = threading.Event(), threading.Event()

    async def run() -> None:
        twin = _twin(engine)
        async with working(twin, *functions, queues={"mail": 2}, config=CONFIG) as stage:
            await until(lambda: bool(stage.worker._parts.roster.held))
            await until(lambda: not stage.worker._parts.roster.held)
            over.set()
            await asyncio.to_thread(leave.wait)
        await twin.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="elsewhere")
    thread.start()
    try:
        yield over
    finally:
        leave.set()
        thread.join()
