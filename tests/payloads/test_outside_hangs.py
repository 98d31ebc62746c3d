"""A store that hangs holds nobody: no event loop, no other job, no limit of its own job, and no worker that ends."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencerow import App, Config
from fencerow.batches import BatchItem
from fencerow.core.model.ids import new_id
from fencerow.core.model.state import State
from fencerow.errors import BlockingCall, InvalidInput, StoreUnavailable
from fencerow.handovers import HandoverTo
from fencerow.payloads import FolderStore
from fencerow.payloads.outside import calls as outside_calls
from fencerow.payloads.outside.calls import StoreCalls
from fencerow.payloads.outside.chore import OutsideSweep
from fencerow.payloads.outside.owner import OwnStore, database_of_payloads
from tests.kit.pace import PATIENCE_S
from tests.payloads.conftest import stored
from tests.payloads.test_outside import LARGE, declare, names

READS = 12  # more than the threads that an event loop has by default


class Hanging(FolderStore):
    """Each call of what hangs waits at a gate. `raised` has what was raised at one, `met` counts those that came."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.hangs = ""
        self.gate = threading.Event()
        self.met = threading.Semaphore(0)
        self.raised: list[BaseException] = []

    def _pass(self, what: str) -> None:
        if what == self.hangs:
            self.met.release()
            try:
                while not self.gate.wait(0.01):  # in slices: a strike would land
                    pass
            except BaseException as error:
                self.raised.append(error)
                raise

    def put(self, name: str, data: bytes) -> None:
        self._pass("result" if "/result-" in name else "arguments")
        super().put(name, data)

    def get(self, name: str, bytes_max: int) -> bytes:
        self._pass("get")
        return super().get(name, bytes_max)

    def delete(self, name: str) -> None:
        self._pass("delete")
        super().delete(name)

    async def amet(self, times: int = 1) -> None:
        for _ in range(times):
            assert await asyncio.to_thread(self.met.acquire, timeout=PATIENCE_S)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Hanging]:
    made = Hanging(tmp_path / "large")
    yield made
    made.gate.set()


@pytest.fixture
async def app(url: str, store: Hanging) -> AsyncIterator[App]:
    config = Config(
        url=url, busy_timeout_s=PATIENCE_S, cancel_raise_s=0.05, shutdown_s=0.1, outside_timeout_s=3600
    )
    async with App(url, config=config, outside=store) as made:
        yield made


async def until(what: Callable[[], Any], state: State) -> Any:
    """Until a job stands so."""
    async with asyncio.timeout(PATIENCE_S):
        while (record := await what()).state is not state:
            await asyncio.sleep(0.05)
    return record


async def test_nobody_else_waits_for_a_store_that_hangs(app: App, store: Hanging) -> None:
    """Neither what uses the event loop's own threads, nor a job with small arguments."""
    echo = declare(app, timeout_s=None)
    handles = [await echo.asubmit(LARGE) for _ in range(READS)]
    store.hangs = "get"
    async with app.worker(slots=READS + 1):
        await store.amet(READS)
        async with asyncio.timeout(PATIENCE_S):
            assert await asyncio.to_thread(lambda: "free") == "free"
            assert await (await echo.asubmit("small")).aresult() == "llams"
        store.gate.set()
        assert [await each.aresult(PATIENCE_S) for each in handles] == [LARGE] * READS


async def test_the_jobs_of_a_batch_wait_for_their_arguments_together(app: App, store: Hanging) -> None:
    """One after the other each would wait for as long as a store may take."""

    @app.batch_job(batch_max=5, batch_wait_s=60)
    async def parcel(items: Sequence[BatchItem[str, int]]) -> None:
        for item in items:
            item.succeed(len(item.value))

    handles = await app.asubmit_many([parcel.call(LARGE) for _ in range(5)])
    store.hangs = "get"
    async with app.worker(slots=1):
        await store.amet(5)
        await handles[0].acancel()
        await until(handles[0].arefresh, State.CANCELLED)
        store.gate.set()
        assert [await each.aresult(PATIENCE_S) for each in handles[1:]] == [100_000] * 4


@pytest.mark.parametrize("ends", ["cancel", "timeout", "stop"])
async def test_an_attempt_that_waits_for_its_arguments_ends_as_one_that_runs(
    app: App, store: Hanging, ends: str
) -> None:
    """It did not begin, so that no end of its wait counts as a failure."""
    handle = await declare(app, timeout_s=0.2 if ends == "timeout" else None, attempts_max=1).asubmit(LARGE)
    store.hangs = "get"
    async with app.worker():
        await store.amet()
        if ends == "cancel":
            await handle.acancel()
        if ends != "stop":
            await until(handle.arefresh, State.CANCELLED if ends == "cancel" else State.QUEUED)
    record = await handle.arefresh()
    assert (record.failures, record.snoozes) == (0, 0)
    if ends == "stop":
        store.gate.set()
        async with app.worker():
            assert await handle.aresult(PATIENCE_S) == LARGE


async def test_a_result_that_its_store_keeps_waiting_goes_into_its_row_when_its_worker_ends(
    app: App, store: Hanging
) -> None:
    handle = await declare(app, timeout_s=None).asubmit(LARGE)
    store.hangs = "result"
    async with app.worker():
        await store.amet()
    assert (await handle.arefresh()).attempt == 1, "the work is done once"
    assert len(stored(app, handle.id)["result"]) > 100_000


async def test_nothing_is_raised_in_a_store_that_a_plain_handler_uses(app: App, store: Hanging) -> None:
    """Its client has locks and connections that all others use."""
    echo = declare(app)

    @app.job(timeout_s=0.1, attempts_max=1)
    def plain() -> None:
        echo.submit(LARGE)

    handle = await plain.asubmit()
    store.hangs = "arguments"
    async with app.worker():
        record = await until(handle.arefresh, State.FAILED)
        assert "AttemptTimeout" in record.error["type"]
        store.hangs = ""
        assert await (await echo.asubmit(LARGE)).aresult(PATIENCE_S) == LARGE
    store.gate.set()
    assert store.raised == []


async def test_a_handover_is_read_beside_the_event_loop(app: App, store: Hanging) -> None:
    @app.job(handover=HandoverTo("bot", key="k"))
    async def big(size: int) -> str:
        return "x" * size

    bot = app.client.handovers("bot")
    async with app.worker():
        for size in (1, 100_000):
            await (await big.asubmit(size)).aresult(PATIENCE_S)
    store.hangs = "get"
    for size in (1, 100_000):
        (handover,) = await bot.atake()
        with pytest.raises(BlockingCall, match="aresult"):  # small or large: it shows at the first one
            handover.result  # noqa: B018
        asyncio.get_running_loop().call_later(0.01, store.gate.set)
        assert await handover.aresult() == "x" * size
        assert await asyncio.to_thread(lambda: handover.result) == "x" * size  # noqa: B023
        await bot.aconfirm(handover)


async def test_nothing_that_blocks_reads_or_writes_a_store_in_an_event_loop(app: App, url: str) -> None:
    echo = declare(app, exclusive=lambda text: text[:5])
    handle = await echo.asubmit(LARGE)
    with app.engine.session() as session, pytest.raises(BlockingCall):
        echo.using(connection=session.connection).submit(LARGE)
    if not url.startswith("sqlite"):  # there a thread does it
        with pytest.raises(InvalidInput, match="`change` in a thread"):
            await handle.achange(args={"text": "short"})
    assert (await asyncio.to_thread(lambda: handle.change(args={"text": "short"}))).changes


async def test_a_sweep_ends_between_two_objects(app: App, store: Hanging, tmp_path: Path) -> None:
    await asyncio.to_thread(app.check_or_create)
    own = await asyncio.to_thread(app.engine.run, database_of_payloads())
    for _ in range(3):
        name = f"{own}/{new_id()}/arguments-0123456789abcdef"
        store.put(name, b"x")
        os.utime(tmp_path / "large" / name, (0.0, 0.0))
    sweep = OutsideSweep(
        lambda: app.client, OwnStore(store, StoreCalls(PATIENCE_S), app.check_or_create), 0.0
    )
    assert await sweep.tick() > 0, "the first look"
    store.hangs = "delete"
    second = asyncio.create_task(sweep.tick())
    await store.amet()

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    store.gate.set()
    for thread in threading.enumerate():
        if thread.name == "fencerow-store":
            await asyncio.to_thread(thread.join, PATIENCE_S)
    assert len(names(store)) == 2


class Held:
    """Calls that hang at a gate, in a time that stands still: on its own no call becomes one that takes too long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate, self._begun, self.now = threading.Event(), threading.Semaphore(0), 0.0
        monkeypatch.setattr(outside_calls, "time", SimpleNamespace(monotonic=lambda: self.now))

    def hang(self) -> None:
        self._begun.release()
        self.gate.wait()

    def begun(self, times: int) -> None:
        for _ in range(times):
            assert self._begun.acquire(timeout=PATIENCE_S)

    def open(self) -> None:
        self.gate.set()
        for thread in threading.enumerate():
            if thread.name == "fencerow-store":
                thread.join(PATIENCE_S)


def test_a_call_that_hangs_is_left_behind_and_when_all_hang_the_next_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, held, made = StoreCalls(0.05, at_once=2), Held(monkeypatch), threading.Event()
    with pytest.raises(StoreUnavailable, match="outside_timeout_s"):
        calls.run(held.hang)
    for _ in range(2):  # the first may have been left behind before its thread began
        calls.start(held.hang)
    held.begun(2)
    held.now = 1.0
    with pytest.raises(StoreUnavailable):
        calls.start(made.set)
    held.open()
    assert not made.is_set()
    assert calls.start(lambda: "it answers").result(PATIENCE_S) == "it answers"


def test_a_call_whose_caller_has_gone_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, held, made = StoreCalls(0.05, at_once=1), Held(monkeypatch), threading.Event()
    calls.start(held.hang)
    held.begun(1)
    with pytest.raises(StoreUnavailable):
        calls.run(made.set)
    held.open()
    assert calls.start(lambda: True).result(PATIENCE_S) and not made.is_set()


def test_what_the_store_raises_is_its_own_also_a_timeout() -> None:
    def raises() -> None:
        raise TimeoutError("of the store")

    for error in (calls_error(StoreCalls(PATIENCE_S).run, raises), asyncio.run(acalls_error(raises))):
        assert str(error) == "of the store"


def calls_error(run: Callable[[Callable[[], None]], None], call: Callable[[], None]) -> BaseException:
    with pytest.raises(TimeoutError) as caught:
        run(call)
    return caught.value


async def acalls_error(call: Callable[[], None]) -> BaseException:
    with pytest.raises(TimeoutError) as caught:
        await StoreCalls(PATIENCE_S).arun(call)
    return caught.value
