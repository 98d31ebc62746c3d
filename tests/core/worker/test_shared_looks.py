"""What sleeps in a worker is looked for together, and nobody looks again at a file that has not changed."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.background.dormant import Dormant
from fencerow.core.background.sleepers import Sleepers
from fencerow.core.chore import Chore
from fencerow.core.model.ids import new_id
from fencerow.core.model.wakeup import Arrived
from fencerow.core.worker.marks import QueueView
from fencerow.db import beat, imprint
from fencerow.db.beat import by_beat
from fencerow.db.sqlite import SqliteEngine
from fencerow.guards.once.window import admit
from tests.core.worker.stage import until, worker_of
from tests.kit.jobs import AnyEngine

USED = ("guards_used", "flows_used", "next_fall_back")


class Sweep(Chore):
    name = "sweep"

    async def tick(self) -> float:
        return 7.0


def counted(engine: AnyEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operations that the engine is given from now on."""
    names: list[str] = []
    arun = engine.arun

    async def noted(operation: Any) -> Any:
        names.append(operation.name)
        return await arun(operation)

    monkeypatch.setattr(engine, "arun", noted)
    return names


def age(lite: SqliteEngine) -> None:
    """Nobody has written to the file for long."""
    for path in (lite.path, Path(f"{lite.path}-wal")):
        if path.exists():
            os.utime(path, (time.time() - 60, time.time() - 60))


def asleep(engine: AnyEngine) -> tuple[Sleepers, list[Dormant]]:
    """Three that sleep, and those that were roused."""
    roused: list[Dormant] = []
    sleepers = Sleepers(roused.append)
    for name in USED:
        sleepers.add(Dormant(name, lambda: engine, name, Sweep, every_s=5.0, hears=(Arrived,)))
    return sleepers, roused


async def test_all_that_sleep_are_looked_for_in_one_statement(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(engine, monkeypatch)
    sleepers, roused = asleep(engine)

    pause_s = await sleepers.tick()

    assert (asked, roused) == (["which_are_used"], [])
    assert 5.0 - beat.BEAT_S <= pause_s <= 5.0


async def test_who_has_rows_is_roused_and_asks_no_more(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(engine, monkeypatch)
    sleepers, roused = asleep(engine)
    await sleepers.tick()
    engine.run(admit("mails", "a", "1", new_id(), window_s=60.0))
    await sleepers.tick()
    (one,) = roused
    asked.clear()

    assert (one.name, one.is_idle, await one.tick(), asked) == ("guards_used", False, 7.0, [])
    await sleepers.tick()
    assert roused == [one]


async def test_nobody_looks_again_at_a_file_until_somebody_writes_to_it(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(lite, monkeypatch)
    sleepers, roused = asleep(lite)
    age(lite)

    await sleepers.tick()
    await sleepers.tick()
    assert asked == ["which_are_used"]
    lite.run(admit("mails", "a", "1", new_id(), window_s=60.0))
    await sleepers.tick()
    assert [each.name for each in roused] == ["guards_used"]


async def test_a_claimer_does_not_look_again_at_what_has_not_changed(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def brief() -> int:
        return 1

    imprints, rested = ["before"], list[float]()
    monkeypatch.setattr(imprint, "BELIEVED_S", math.inf)
    monkeypatch.setattr(lite, "imprint", lambda: imprints[0])
    rest = QueueView.rest

    def noted(view: QueueView, now: float) -> None:
        rested.append(now)
        rest(view, now)

    monkeypatch.setattr(QueueView, "rest", noted)
    asked = counted(lite, monkeypatch)
    async with worker_of(lite, brief):
        await until(lambda: len(rested) > 0, what="the last look was not repeated")
        asked.clear()
        await until(lambda: len(rested) > 3, what="nor the next")
        assert "lanes" not in asked
        imprints[0] = "after"
        await until(lambda: "lanes" in asked, what="a look at what has changed")


def test_an_imprint_is_believed_for_a_while_and_never_one_that_nobody_could_read() -> None:
    seen, now = imprint.LastImprint(), time.monotonic()
    seen.note("a", now)
    assert (seen.is_still("a"), seen.is_still("b"), seen.is_still(None)) == (True, False, False)
    seen.note("a", now - imprint.BELIEVED_S)
    assert not seen.is_still("a")
    seen.note(None, now)
    assert not seen.is_still(None)


def test_a_file_written_just_now_and_a_leap_of_the_clock_have_no_old_imprint(lite: SqliteEngine) -> None:
    age(lite)
    before = lite.imprint()

    assert before is not None
    lite.clock.offset_us += 3_600_000_000
    assert lite.imprint() != before
    os.utime(lite.path)
    assert lite.imprint() is None


def test_all_pauses_of_a_second_and_more_end_at_beats_and_none_is_longer() -> None:
    for now, pause_s in ((1000.25, 1.0), (1000.75, 1.0), (1000.25, 5.5)):
        at = by_beat(now, pause_s)
        assert now < at <= now + pause_s
        beats = (at - beat.OFFSET_S) / beat.BEAT_S
        assert beats == pytest.approx(round(beats), abs=1e-6)
    assert by_beat(beat.OFFSET_S + 1000.2, 0.5) == beat.OFFSET_S + 1000.7, "no beat within that"
