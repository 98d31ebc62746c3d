"""All that an app and its worker do, in uvloop: an event loop in C, with other handles and frames."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from fencerow import App, Config
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker.hinted import HintedClaims
from tests.core.worker.test_hinted import Begun
from tests.kit.leftovers import no_threads_left
from tests.kit.pace import PATIENCE_S

COUNT = 30


def in_uvloop(url: str, scenario: Callable[[App], Awaitable[None]]) -> None:
    """Play it, and complain of what the loop met in a callback, where nobody waits for the error."""
    met: list[dict[str, Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, uvloop.Loop)
        loop.set_exception_handler(lambda _, context: met.append(context))
        async with App(url, config=Config(poll_max_s=PATIENCE_S)) as app, asyncio.timeout(PATIENCE_S):
            await scenario(app)

    with no_threads_left():
        uvloop.run(main())
    assert met == []


def test_what_is_submitted_alone_together_and_in_batches_runs(url: str) -> None:
    async def scenario(app: App) -> None:
        @app.job
        async def doubled(n: int) -> int:
            await asyncio.sleep(0)
            return 2 * n

        @app.job
        def in_a_thread(n: int) -> int:
            return 3 * n

        async with app.worker(slots=5):
            for n in range(COUNT):  # each starts by a hint
                handle = await doubled.asubmit(n)
                assert await handle.aresult() == 2 * n
            together = await asyncio.gather(*(in_a_thread.asubmit(n) for n in range(COUNT)))
            batch = await app.asubmit_many(doubled.call(n) for n in range(COUNT))
            assert [await each.aresult() for each in together] == [3 * n for n in range(COUNT)]
            assert [await each.aresult() for each in batch] == [2 * n for n in range(COUNT)]

    in_uvloop(url, scenario)


def test_a_hinted_claim_may_have_the_loop_look_at_once_and_again(migrated_path: Path) -> None:
    """What is due at once has in uvloop another kind of handle, which nobody can ask when it is due."""
    engine, woken = Begun(), asyncio.Event()

    async def scenario(_: App) -> None:
        hinted = HintedClaims(engine, woken)  # type: ignore[arg-type]
        for _again in range(2):
            claim = store.claim("mail", [], holder="", names=[], limit=1, margin_s=0.0)
            assert hinted.begin(claim, list, lambda _jobs: 0.0001, print)
            engine.over([], None)
            await hinted.answered()
        await woken.wait()

    in_uvloop(f"sqlite:///{migrated_path}", scenario)


def test_a_worker_that_leaves_lets_end_what_runs_and_starts_no_more(url: str) -> None:
    async def scenario(app: App) -> None:
        began, leaving = asyncio.Event(), asyncio.Event()

        @app.job
        async def works() -> None:
            began.set()
            await leaving.wait()

        async with app.worker(slots=1) as worker:
            handles = await app.asubmit_many(works.call() for _ in range(2))
            await began.wait()
            worker.request_stop()
            leaving.set()
        assert sorted([await each.astatus() for each in handles]) == ["queued", "succeeded"]

    in_uvloop(url, scenario)


@pytest.mark.parametrize("way", ["task", "callback"])
def test_code_that_blocks_the_loop_is_said_and_of_a_task_whose_it_is(url: str, way: str) -> None:
    """Of a callback uvloop does not show in whose context it runs."""
    told: list[Mapping[str, Any]] = []

    def block_until_told() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not told:
            assert time.monotonic() < deadline, "nobody noticed"
            time.sleep(0.01)

    async def scenario(app: App) -> None:
        app.telemetry.listen(lambda name, facts: told.append(facts) if name == Fact.LOOP_BLOCKED else None)

        @app.job
        async def blocks() -> None:
            async def inner() -> None:
                block_until_told()

            def call() -> None:
                block_until_told()
                done.set_result(None)

            done = asyncio.get_running_loop().create_future()
            if way == "task":
                await asyncio.create_task(inner())
            else:
                asyncio.get_running_loop().call_soon(call)
                await done

        async with app.worker(ends_process=False):
            handle = await blocks.asubmit()
            await handle.aresult()
        assert told[0]["job_id"] == (handle.id if way == "task" else None)
        assert "in test_code_that_blocks" in told[0]["where"]

    in_uvloop(url, scenario)
