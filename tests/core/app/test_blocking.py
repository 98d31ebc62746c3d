"""A worker for plain code: in a thread beside it, or until it is asked to stop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fencerow import App
from fencerow.core.store import store
from fencerow.core.worker.vitals import Phase
from fencerow.errors import InvalidInput, OrderRefused, SchemaMissing
from tests.kit.pace import PATIENCE_S


def double(number: int) -> int:
    return 2 * number


begun = threading.Event()


async def for_ever() -> None:
    begun.set()
    await asyncio.sleep(10 * PATIENCE_S)


def test_a_block_of_plain_code_has_a_worker_beside_it(lite_app: App) -> None:
    job = lite_app.job(double)
    with lite_app, lite_app.worker(slots=2) as worker:
        assert job.submit(21).result(timeout_s=PATIENCE_S) == 42
        assert worker.change_blocking(slots=3) == 1 and worker.vitals().slots == 3, "in force when it returns"
        assert worker.vitals().phase is Phase.RUNNING and not worker.wait_stopped_blocking(0)

    assert worker.vitals().phase is Phase.ENDED and worker.wait_stopped_blocking(0)
    with pytest.raises(OrderRefused):
        worker.change_blocking(slots=4)


def test_it_runs_until_nothing_is_due_or_another_thread_asks_it_to_stop(lite_app: App) -> None:
    job = lite_app.job(double)
    with lite_app:
        handle = job.submit(21)
        lite_app.worker().run_blocking(until_idle=True)
        assert handle.status() == "succeeded"

        worker = lite_app.worker()
        thread = threading.Thread(target=worker.run_blocking)
        thread.start()
        assert job.submit(4).result(timeout_s=PATIENCE_S) == 8
        worker.request_stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "only the loop's own thread woke it"


def test_an_error_in_the_block_ends_what_runs_at_once(lite_app: App) -> None:
    job = lite_app.job(for_ever)
    with lite_app:
        handle = job.submit()
        with pytest.raises(ZeroDivisionError), lite_app.worker() as worker:
            assert begun.wait(PATIENCE_S) and worker.running == 1
            raise ZeroDivisionError
        assert handle.status() == "queued", "it was released"


def test_what_the_start_raises_is_raised_at_the_block(lite_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    lite_app.job(double)

    def missing(_: object) -> None:
        raise SchemaMissing("there are no tables")

    monkeypatch.setattr(store, "check_schema", missing)
    with pytest.raises(SchemaMissing), lite_app.worker():
        pass


def test_what_the_change_meets_in_the_loop_is_raised_to_plain_code(
    lite_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: object, **change: object) -> int:
        raise ZeroDivisionError(str(change))

    lite_app.job(double)
    monkeypatch.setattr("fencerow.core.worker.plain.Worker.change", fails)
    with lite_app, lite_app.worker() as worker, pytest.raises(ZeroDivisionError, match="slots"):
        worker.change_blocking(slots=3)


async def test_inside_an_event_loop_it_is_refused(lite_app: App) -> None:
    lite_app.job(double)
    with pytest.raises(InvalidInput, match="async with"), lite_app.worker():
        pass
    with pytest.raises(InvalidInput, match="await worker"):
        lite_app.worker().run_blocking()
    with pytest.raises(InvalidInput, match="await worker"):
        lite_app.worker().change_blocking(slots=2)
    with pytest.raises(InvalidInput, match="await worker"):
        lite_app.worker().wait_stopped_blocking()
