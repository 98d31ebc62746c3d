"""A fire lies in a maintenance window or not by its own instant, however late it is made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.schedules.definition import InWindow, Overlap
from fencerow.schedules.misfire import Catching, Misfire, due
from fencerow.schedules.spec import Spec
from fencerow.schedules.ticking import Made
from fencerow.schedules.windows import MaintenanceWindows
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine
from tests.schedules.instants import utc
from tests.schedules.test_ticks import fired, ticks

Put = Callable[..., Any]
NIGHT = ["22:00-22:30"]
HOUR_US = 3_600_000_000


def go_to(engine: AnyEngine, clock: DatabaseClock, hour: int, minute: int) -> datetime:
    """The next time at which the clock shows this."""
    now = datetime.fromtimestamp(engine.run(store.clock()) / 1e6, UTC)
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    then += timedelta(days=then <= now)
    clock.advance((then - now).total_seconds())
    return then


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("in_window", InWindow)
def test_a_fire_before_a_window_makes_its_job_which_starts_behind_it(
    engine: AnyEngine, clock: DatabaseClock, put: Put, misfire: Misfire, in_window: InWindow
) -> None:
    go_to(engine, clock, 21, 50)
    put(
        spec={"cron": "55 21 * * *"}, windows=NIGHT, misfire=misfire, late_s=3600.0,
        overlap=Overlap.ALLOW, in_window=in_window,
    )  # fmt: skip

    go_to(engine, clock, 22, 5)
    (job,) = fired(engine)

    assert [each.made for each in ticks(engine)] == [Made.JOB]
    stored = engine.run(store.read([job.id]))[job.id]
    assert f"{datetime.fromtimestamp(stored.run_at_us / 1e6, UTC):%H:%M}" == "22:30"


@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.SKIP])
def test_fires_in_a_window_make_none_though_it_is_over(
    engine: AnyEngine, clock: DatabaseClock, put: Put, overlap: Overlap
) -> None:
    go_to(engine, clock, 21, 58)
    put(spec={"cron": "5,15,35 22 * * *"}, windows=NIGHT, misfire=Misfire.ALL, overlap=overlap)

    go_to(engine, clock, 22, 40)

    assert len(fired(engine)) == 1
    assert [each.made for each in ticks(engine)] == [Made.WINDOW, Made.WINDOW, Made.JOB]


@pytest.mark.parametrize(
    ("cron", "more", "made"),
    [
        ("*/10 * * * *", ["22:30-23:00"], "21:50"),  # of those that were missed, the latest outside
        ("5 22 * * *", [], "22:05"),  # all were in the window: its tick says so
        ("0,30 21,22 * * *", [], "22:30"),
    ],
)
def test_what_is_made_up_is_the_latest_outside_the_windows(cron: str, more: list[str], made: str) -> None:
    spec = Spec.parse({"cron": cron})
    windows = MaintenanceWindows.parse([*NIGHT, *more])
    first = spec.next_after(utc(2026, 11, 28, 20), "")

    done = due(spec, "", first, utc(2026, 11, 28, 22, 45), Catching(Misfire.ONE, 10), windows)

    (fire,) = done.fires
    assert f"{datetime.fromtimestamp(fire / 1e6, UTC):%H:%M}" == made
    assert done.next_us > utc(2026, 11, 28, 22, 45)


def test_a_closed_stretch_begins_where_the_first_of_its_windows_does() -> None:
    windows = MaintenanceWindows.parse(["22:00-02:00", "21:00-22:00"])

    assert windows.closed_since(utc(2026, 11, 28, 1)) == utc(2026, 11, 27, 21)
    assert windows.closed_since(utc(2026, 11, 28, 12)) == utc(2026, 11, 28, 12)
    for instant in range(utc(2026, 11, 27, 21), utc(2026, 11, 28, 2), HOUR_US):
        assert windows.closed(windows.closed_since(instant)) and not windows.closed(utc(2026, 11, 27, 21) - 1)
