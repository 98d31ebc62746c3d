"""A handler that waits for another job keeps its slot: that is told, at once and once for each job."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from fencerow import App
from fencerow.batches import BatchItem
from fencerow.testing import drain


@pytest.fixture
def app(migrated_path: Path) -> App:
    made = App(f"sqlite:///{migrated_path}")

    @made.job(name="inner")
    async def inner() -> int:
        return 1

    @made.job(name="plain")
    def plain() -> int:
        return inner.submit().result() + inner.submit().result()

    @made.job(name="async")
    async def outer() -> int:
        handle = await inner.asubmit()
        await made.client.await_ended(handle.id)
        return await handle.aresult()  # it has ended: this waits for nothing

    @made.batch_job(name="batch", batch_max=2)
    async def batch(items: Sequence[BatchItem[int, None]]) -> None:
        for _ in items:
            await (await inner.asubmit()).aresult()

    return made


@pytest.mark.parametrize("name", ["plain", "async", "batch"])
def test_who_waits_for_whom_is_told_once(name: str, app: App, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        app.submit_by_name(name, {"value": 1} if name == "batch" else {})

    with caplog.at_level(logging.WARNING, "fencerow.client"):
        ran = drain(app, slots=3, check=True)

    inner = [each.id for each in ran if each.name == "inner"]
    (told,) = [each.getMessage() for each in caplog.records if each.name == "fencerow.client"]
    assert told.startswith(f"job {name} waits for job inner (")
    assert any(each in told for each in inner) and "job.submit_next(...)" in told


def test_who_waits_outside_of_jobs_is_told_nothing(app: App, caplog: pytest.LogCaptureFixture) -> None:
    handle = app.submit_by_name("inner")
    drain(app)

    assert handle.result() == 1
    assert not [each for each in caplog.records if each.name == "fencerow.client"]
