"""A job that was made before its schedule's window, and is picked up inside of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from fencerow.core.model.job import moment
from fencerow.core.model.state import State
from fencerow.core.telemetry import Fact
from fencerow.schedules import looking, running, ticking
from fencerow.schedules.definition import InWindow
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import read, working
from tests.kit.jobs import AnyEngine


def stated(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"


async def test_it_goes_back_until_the_window_ends_and_then_runs(
    engine: AnyEngine, clock: DatabaseClock, put: Callable[..., Any]
) -> None:
    """It fires a minute from now; the window begins in an hour; the job lies in its queue until then."""
    ran = []

    def send(to: str) -> None:
        ran.append(to)

    now = moment(await engine.arun(looking.now_us())).replace(tzinfo=None)
    opens = (now + timedelta(hours=5)).replace(second=0, microsecond=0)
    window = f"{stated(now + timedelta(hours=1))} - {stated(opens)}"
    put(spec={"interval_s": 60, "spread": False}, windows=[window], in_window=InWindow.DEFER)
    clock.advance(61)
    (job,) = (await engine.arun(ticking.tick())).jobs
    clock.advance(2 * 3600)
    _, (by_hand,) = await engine.arun(running.run_now("report", None, actor="ada", force=True))

    async with working(engine, send) as stage:
        await stage.heard.wait(Fact.RELEASED, job_id=job.id)
        await stage.ended(by_hand.id)
    kept = await read(engine, job.id)

    assert ran == ["ada"]  # what a person asks for is not kept waiting
    assert (kept.state, kept.failures, kept.snoozes) == (State.QUEUED, 0, 0)
    assert abs((moment(kept.run_at_us).replace(tzinfo=None) - opens).total_seconds()) < 60

    clock.advance(3 * 3600)
    async with working(engine, send) as stage:
        ended = await stage.ended(job.id)
    assert (ended.state, ended.failures, ended.snoozes) == (State.SUCCEEDED, 0, 0)
