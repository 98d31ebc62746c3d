"""An operation that computes does so on a thread; its answers come from the event loop, and a cancel waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from fencerow.db.run import arun_beside
from tests.kit.pace import PATIENCE_S


async def answered(request: str) -> str:
    assert threading.current_thread() is threading.main_thread()
    if request == "bad":
        raise ValueError("no answer")
    return request.upper()


async def test_what_an_answer_raises_is_met_where_it_was_asked() -> None:
    def asking() -> Generator[str, str, list[str]]:
        assert threading.current_thread() is not threading.main_thread()
        found = [(yield "a")]
        try:
            yield "bad"
        except ValueError as error:
            found.append(str(error))
        return found

    assert await arun_beside(asking(), answered) == ["A", "no answer"]


async def test_a_cancel_waits_for_the_end() -> None:
    computing, go_on, ended = threading.Event(), threading.Event(), []

    def asking() -> Generator[str, str, None]:
        computing.set()
        go_on.wait(PATIENCE_S)
        yield "a"
        ended.append(True)

    task = asyncio.create_task(arun_beside(asking(), answered))
    await asyncio.to_thread(computing.wait, PATIENCE_S)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done(), "its thread still asks"

    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == [True]
