"""Facts that a worker tells of its claims: what no wake-up told of, and how long a job was due when a slot took it."""

from __future__ import annotations

import pytest

from fencerow.core.model.job import QueueLane
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker.marks import QueueView
from tests.core.worker.stage import working
from tests.kit.jobs import AnyEngine

MINUTE_US = 60_000_000


async def brief() -> int:
    return 1


async def test_a_job_that_only_a_sweep_found_is_told_and_how_long_it_was_due(engine: AnyEngine) -> None:
    async with working(engine, brief) as stage:
        await stage.run("brief")  # the first look is no sweep that saves anything
        now_us = await engine.arun(store.clock())

        job = await stage.run("brief", run_at_us=now_us - MINUTE_US)  # nobody wakes the worker

        (swept,) = await stage.heard.wait(Fact.SWEPT)
        (started,) = stage.heard.all(Fact.STARTED, job_id=job.id)
    assert swept == {"job": "brief", "queue": "mail", "count": 1}
    assert 60.0 <= started["waited_s"] < 600.0


def test_work_that_was_told_of_or_known_to_come_is_not_called_untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencerow.core.worker.marks.time.monotonic", lambda: 100.0)
    first, quiet, hinted, lost, known = (QueueView("mail", 60.0) for _ in range(5))
    for view in (quiet, hinted, lost):
        view.swept([], MINUTE_US, began=100.0)
    known.swept([QueueLane(0, MINUTE_US + 500_000)], MINUTE_US, began=100.0)  # due in half a second
    hinted.hint(0, MINUTE_US)
    lost.look_again()

    told = {"first": first, "quiet": quiet, "hinted": hinted, "lost": lost, "known": known}

    assert {name for name, view in told.items() if view.is_untold(101.0)} == {"quiet"}
