"""The database's clock jumps: what a worker carries on of its time, and what goes on by it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.db import clock as module
from fencerow.db.clock import CarriedClock
from fencerow.db.due import OWN
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import job_of, quick, until, working
from tests.kit.jobs import AnyEngine, new_job
from tests.kit.pace import slower

HOUR_S = 3600.0


class Clocks:
    """The host's clock, and the database's, which is `ahead_s` ahead of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.ahead_s = 1000.0, 5000.0
        monkeypatch.setattr(module, "steady", lambda: self.now)
        self.carried = CarriedClock()

    @property
    def database_us(self) -> int:
        return round((self.now + self.ahead_s) * 1e6)

    def read(self, passed_s: float = 1.0) -> None:
        """The time passes, and the database's clock is read."""
        self.now += passed_s
        self.carried.read(self.now, self.database_us)


def test_while_the_clock_is_well_it_alone_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    for _ in range(5):
        clocks.read()

    assert clocks.carried.due() == OWN
    assert clocks.carried.behind_s() == 0


def test_what_was_written_before_stays_due_when_the_clock_goes_further_back_and_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = Clocks(monkeypatch)
    clocks.read()
    clocks.ahead_s = 3600
    clocks.read()
    written_us = clocks.database_us - 3_700_000_000  # before it went ahead
    clocks.ahead_s = 0
    clocks.read()
    clocks.ahead_s = -3600
    clocks.read()
    clocks.ahead_s = 0
    clocks.read()

    due = clocks.carried.due()

    assert due.until_us > clocks.database_us + 3_590_000_000
    assert written_us < due.since_us <= clocks.database_us


def test_a_clock_that_went_back_is_carried_on_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clocks = Clocks(monkeypatch)
    clocks.read()
    before_us = clocks.database_us
    clocks.ahead_s -= HOUR_S
    clocks.read(passed_s=2.0)

    assert clocks.carried.due().until_us == before_us + 2_000_000
    assert clocks.carried.due().since_us == before_us - round(HOUR_S * 1e6), "it may have gone back at once"
    assert clocks.carried.behind_s() == pytest.approx(HOUR_S)
    assert [each.levelno for each in caplog.records] == [logging.ERROR]
    assert "went back by 3600.0 s" in caplog.text
    clocks.read(passed_s=100.0)
    assert clocks.carried.due().until_us == before_us + 102_000_000
    assert len(caplog.records) == 1, "it is said once"


def test_it_goes_back_again_and_the_first_time_is_carried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    clocks.read()
    before_us = clocks.database_us
    for _ in range(2):
        clocks.ahead_s -= HOUR_S
        clocks.read()

    assert clocks.carried.due().until_us == before_us + 2_000_000
    assert clocks.carried.due().since_us == before_us + 1_000_000 - round(2 * HOUR_S * 1e6)
    assert clocks.carried.behind_s() == pytest.approx(2 * HOUR_S)


def test_a_clock_that_returns_decides_alone_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clocks = Clocks(monkeypatch)
    clocks.read()
    clocks.ahead_s -= HOUR_S
    clocks.read()
    clocks.ahead_s += HOUR_S
    clocks.read()

    assert clocks.carried.due() == OWN
    assert "caught up" in caplog.records[-1].message


def test_a_clock_that_went_ahead_is_said_and_followed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clocks = Clocks(monkeypatch)
    clocks.read()
    clocks.ahead_s += HOUR_S
    clocks.read()

    assert clocks.carried.due() == OWN
    assert "went ahead by 3600.0 s" in caplog.text


def test_a_wild_clock_of_this_host_says_nothing_of_the_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    clocks.read()
    clocks.now, clocks.ahead_s = clocks.now + 10 * HOUR_S, clocks.ahead_s - 10 * HOUR_S + 1
    clocks.read(passed_s=0.0)

    assert clocks.carried.due() == OWN


def test_of_two_readings_at_once_nobody_knows_which_was_first(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    clocks.read()
    clocks.carried.read(clocks.now - 5.0, clocks.database_us - 4_000_000)

    assert clocks.carried.due() == OWN


# --- in workers --------------------------------------------------------------------------------------

LEASE_S = slower(6.0)  # nobody loses it, and some wait for a whole one
CONFIG = quick(lease_s=LEASE_S)


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
async def test_jobs_that_are_due_go_on_though_the_clock_jumps(
    engine: AnyEngine, clock: DatabaseClock, jump_s: float
) -> None:
    gate, ran = asyncio.Event(), []

    async def works(n: int) -> int:
        await gate.wait()
        ran.append(n)
        return n

    jobs = [
        job_of("works", {"n": n}, timeout_s=900.0, attempts_max=1, exclusive="k" if n % 3 == 0 else None)
        for n in range(30)
    ]
    await engine.arun(store.submit_gated(jobs))
    async with (
        working(engine, works, queues={"mail": 2}, config=CONFIG) as first,
        working(engine, works, queues={"mail": 2}, config=CONFIG) as second,
    ):
        stages = [first, second]
        await until(lambda: all(len(stage.worker._parts.roster.held) >= 2 for stage in stages))
        await until(lambda: all(stage.worker._parts.lease.may_judge() for stage in stages))
        clock.advance(jump_s)
        gate.set()
        await until(lambda: len(ran) >= len(jobs), what="every job was run")
        await until(lambda: all(not stage.worker._parts.roster.held for stage in stages))
        found = await engine.arun(store.read([job.id for job in jobs]))

    assert {(job.state, job.attempt, job.failures) for job in found.values()} == {("succeeded", 1, 0)}
    assert sorted(ran) == list(range(30)), "nothing ran twice"


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "of its label": {"affinity": "own"},
    "of a label that nobody carries": {"affinity": "nobody's", "affinity_wait_s": 0.3},
    "of a share": {"share": "ada"},
    "of a share and a label": {"share": "ada", "affinity": "nobody's", "affinity_wait_s": 0.3},
    "under a key": {"exclusive": "k"},
    "under a key, with a label": {"exclusive": "l", "affinity": "nobody's", "affinity_wait_s": 0.3},
    "under a limit": {"limits": ("one",)},
    "under a limit and a key": {"limits": ("one",), "exclusive": "m"},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_submitted_while_the_clock_stood_ahead_is_run_by_who_read_it(
    engine: AnyEngine, clock: DatabaseClock, kind: str
) -> None:
    """Each kind has a place of its own to wait at, and each place has its own look for what is due there."""
    gate, ran = asyncio.Event(), []

    async def works(n: int) -> None:
        await gate.wait()
        ran.append(n)

    await engine.arun(define(Limit("one", at_once=1), actor=None, reason=None))
    await engine.arun(store.submit([job_of("works", {"n": 0})]))
    async with working(
        engine, works, queues={"mail": 1}, config=quick(lease_s=LEASE_S, labels="own")
    ) as stage:
        read = stage.worker._parts.clock
        await until(lambda: bool(stage.worker._parts.roster.held), what="its slot is taken")
        clock.advance(HOUR_S)
        ahead_us = await engine.arun(store.clock())
        await until(lambda: (read.now_us() or 0) >= ahead_us, what="it has read the clock")
        jobs = [job_of("works", {"n": n}, **KINDS[kind]) for n in (1, 2)]
        await engine.arun(store.submit_gated(jobs))
        clock.advance(-HOUR_S)
        await until(lambda: read.is_behind, what="it has seen that the clock went back")
        gate.set()
        await until(lambda: len(ran) == 3, what="all were run")


async def test_a_holder_that_died_before_the_clock_went_back_is_found(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """By the clock its lease holds for another hour."""

    async def send() -> str:
        return "sent"

    holder = new_id()
    assert await engine.arun(
        store.register(holder=holder, name="gone", host="h", pid=1, info="{}", lease_s=LEASE_S)
    )
    made = new_job("{}", name="send")
    await engine.arun(store.submit([made]))
    taken = store.claim("mail", [store.Mark(0)], holder=holder, names=["send"], limit=1, margin_s=60.0)
    assert [each.id for each in await engine.arun(taken)] == [made.id]
    clock.advance(-HOUR_S)
    async with working(engine, send, config=CONFIG) as stage:
        found = await stage.ended(made.id)

    assert (found.state, found.attempt) == ("succeeded", 2)
