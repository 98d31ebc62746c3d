"""What schedules compute holds no event loop: the loop goes on while a tick decides, or a list is compared."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fencerow.schedules.definitions as definitions
import fencerow.schedules.following as following
import fencerow.schedules.past as past
import fencerow.schedules.reconciling as reconciling
import fencerow.schedules.ticking as ticking
from fencerow.core.client.base import ClientBase
from fencerow.db.run import Operation
from fencerow.schedules.definitions import RowKind, WantedRow
from fencerow.schedules.listing import Listing
from fencerow.schedules.verbs import ScheduleVerbs
from fencerow.testing.clock import clock_of
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.schedules.conftest import wanted


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], Callable[[], bool]]:
    """Let a function wait until the event loop has come round; tells whether it always did."""

    def watch(module: Any, name: str) -> Callable[[], bool]:
        loop, inner = asyncio.get_running_loop(), getattr(module, name)
        came: list[bool] = []

        def waiting(*args: Any, **kwargs: Any) -> Any:
            round_ = threading.Event()
            loop.call_soon_threadsafe(round_.set)
            on_loop = threading.current_thread() is threading.main_thread()
            came.append(not on_loop and round_.wait(PATIENCE_S))
            return inner(*args, **kwargs)

        monkeypatch.setattr(module, name, waiting)
        return lambda: bool(came) and all(came)

    return watch


async def test_the_loop_goes_on_while_a_tick_decides(
    engine: AnyEngine, put: Callable[..., WantedRow], computed: Callable[[Any, str], Callable[[], bool]]
) -> None:
    await asyncio.to_thread(put)
    clock = clock_of(engine)
    await asyncio.to_thread(clock.advance, 3600.0)
    went_on = computed(ticking, "due")

    done = await engine.arun(ticking.tick())

    assert len(done.jobs) == 1
    assert went_on()
    await asyncio.to_thread(clock.close)


@pytest.mark.parametrize("what", ["refresh", "reconcile"])
async def test_the_loop_goes_on_while_rows_are_compared(
    engine: AnyEngine, what: str, computed: Callable[[Any, str], Callable[[], bool]]
) -> None:
    head = wanted("report", kind=RowKind.HEAD)
    first: Operation[Any] = reconciling.reconcile(
        [head], owner="app", version=0, own=set(), running=set(), actor=None
    )
    await engine.arun(first)
    went_on = computed(definitions, "_document")
    again: Operation[Any] = (
        following.refresh(
            "report",
            head.digest,
            Listing({"a": wanted("report", "a", RowKind.ENTITY)}),
            owner="app",
            actor=None,
        )
        if what == "refresh"
        else reconciling.reconcile(
            [head, wanted("other")], owner="app", version=1, own=set(), running=set(), actor=None
        )
    )

    done = await engine.arun(again)

    assert done.made == (["a"] if what == "refresh" else ["other"])
    assert went_on()


async def test_the_loop_goes_on_while_a_backfill_counts_fires(
    engine: AnyEngine, put: Callable[..., WantedRow], computed: Callable[[Any, str], Callable[[], bool]]
) -> None:
    await asyncio.to_thread(put, spec={"interval_s": 600})
    now, verbs = datetime.now(UTC), ScheduleVerbs(ClientBase(engine, actor="ada"))
    went_on = computed(past, "fires_of")

    found = await verbs.abackfill("report", start=now - timedelta(hours=2), end=now, dry_run=True)

    assert len(found) == 12
    assert went_on()
