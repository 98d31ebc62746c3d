"""A length of time is a number of seconds or a timedelta, wherever a caller gives one; inside it is a float."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Backoff, Defaults, FencerowError, Job, Retry, Snooze
from fencerow.core.model.seconds import in_seconds
from fencerow.events import consumer
from fencerow.guards.mutex import Mutex
from fencerow.guards.once import DedupeWindow, once
from fencerow.guards.replace import replace_for
from fencerow.guards.transitions import Lease, Overdue
from fencerow.migrations import Migrator

MINUTE = timedelta(minutes=1)


def test_a_timedelta_is_as_many_seconds_and_all_else_stays() -> None:
    assert in_seconds(timedelta(days=1, milliseconds=5)) == 86_400.005
    assert in_seconds(2.5) == 2.5
    assert in_seconds(None) is None


def test_records_hold_plain_seconds() -> None:
    limits = Defaults(timeout_s=MINUTE, retention_s=timedelta(days=2), expires_s=MINUTE)
    backoff = Backoff(base_s=timedelta(seconds=2), cap_s=MINUTE)

    assert (limits.timeout_s, limits.retention_s, limits.expires_s) == (60.0, 172_800.0, 60.0)
    assert (backoff.base_s, backoff.cap_s) == (2.0, 60.0)
    assert Backoff.from_json(backoff.to_json()) == backoff
    assert Lease(lease_s=MINUTE, fence="attempt", since="at").lease_s == 60.0
    assert Overdue("new", "at", MINUTE).after_s == 60.0


@pytest.mark.parametrize("kind", [Defaults, Backoff, Lease, Overdue])
def test_what_type_checkers_are_told_of_a_record_is_what_it_takes(kind: Any) -> None:
    """The `__init__` under TYPE_CHECKING has the fields in their order, with their defaults."""
    source = inspect.getsource(kind)
    told = source[source.index("def __init__(") : source.index(") -> None: ...")]
    written = [
        each.split(":")[0].strip()
        for each in told.split("(", 1)[1].replace("\n", " ").split(",")
        if ":" in each
    ]

    assert written == list(inspect.signature(kind).parameters)


def test_what_a_handler_raises_takes_it() -> None:
    assert Retry(MINUTE).after_s == 60.0
    assert Snooze(MINUTE).delay_s == 60.0


async def test_a_job_and_a_submit_take_it(sqlite_path: Path) -> None:
    async with App(f"sqlite:///{sqlite_path}") as app:

        @app.job(timeout_s=MINUTE, expires_s=timedelta(hours=1), key_lifetime_s=timedelta(days=1))
        async def send(job: Job) -> None: ...

        handle = await send.using(delay_s=MINUTE, retention_s=timedelta(days=1), key="k").asubmit()
        job = await handle.arefresh()

        assert (job.timeout_s, job.retention_s) == (60.0, 86_400.0)
        assert job.run_at_us - job.submitted_at_us == 60_000_000
        with pytest.raises(TimeoutError):
            await handle.aresult(timedelta(milliseconds=10))
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(handle.result, timedelta(milliseconds=10))


def test_guards_consumers_and_migrators_take_it(sqlite_path: Path, tmp_path: Path) -> None:
    app = App(f"sqlite:///{sqlite_path}")

    Mutex(app, "k", stale_s=MINUTE, wait_s=MINUTE)
    once(app, "k", stale_s=MINUTE, lifetime_s=timedelta(days=1), timeout_s=MINUTE, wait_s=MINUTE)
    DedupeWindow(app, "w", MINUTE, timeout_s=MINUTE)
    replace_for(app, table="t", source_column="s", source=1, version=1, stale_s=MINUTE, wait_s=MINUTE)
    (tmp_path / "0001_create.sql").write_text("CREATE TABLE t (n INTEGER)")
    Migrator(f"sqlite:///{sqlite_path}", tmp_path, wait_s=MINUTE, lock_wait_s=MINUTE, lease_s=MINUTE)

    @consumer(app, group="g", topics=["a.b"], timeout_s=MINUTE)
    async def read(event: Any) -> None: ...


def nothing() -> None: ...


GIVEN: list[Callable[[App, Any], object]] = [
    lambda app, wrong: app.job(timeout_s=wrong),
    lambda app, wrong: app.job(key_lifetime_s=wrong),
    lambda app, wrong: app.job(nothing).using(delay_s=wrong),
    lambda app, wrong: Defaults(expires_s=wrong),
    lambda app, wrong: Backoff(base_s=wrong),
    lambda app, wrong: Retry(wrong),
    lambda app, wrong: Snooze(wrong),
    lambda app, wrong: Mutex(app, "k", stale_s=wrong),
    lambda app, wrong: once(app, "k", lifetime_s=wrong),
    lambda app, wrong: Migrator("sqlite:///x.db", ".", wait_s=wrong),
]


@pytest.mark.parametrize("give", GIVEN)
@pytest.mark.parametrize("wrong", [-1, timedelta(seconds=-1), math.nan, True, "60", math.inf])
def test_what_is_no_length_of_time_is_refused(
    give: Callable[[App, Any], object], wrong: Any, lite_app: App
) -> None:
    with pytest.raises(FencerowError) as refused:
        give(lite_app, wrong)

    assert refused.value.code in ("FR-101", "FR-104", "FR-201")


@pytest.mark.parametrize("wrong", [math.nan, True, "60"])
def test_nor_is_it_a_time_to_wait(wrong: Any, lite_app: App) -> None:
    with pytest.raises(FencerowError, match="timeout_s is"):
        lite_app.client.outcome("00000000-0000-0000-0000-000000000000", wrong)
    lite_app.close()


@pytest.fixture
def lite_app(sqlite_path: Path) -> App:
    return App(f"sqlite:///{sqlite_path}")
