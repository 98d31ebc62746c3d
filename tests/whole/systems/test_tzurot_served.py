"""Part C of the four systems over HTTP: Tzurot, rebuilt in tzurot.py, behind a gateway of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit.pace import PATIENCE_S
from tests.whole.systems import tzurot
from tests.whole.systems.outside import until
from tests.whole.systems.serving import posted, serving
from tests.whole.systems.stage import Stage

SYSTEM = tzurot  # which `stage` opens


@pytest.mark.scenario("C.1")
async def test_a_post_is_accepted_while_its_job_runs_and_the_result_comes_without_a_request(
    stage: Stage, tmp_path: Path
) -> None:
    """It is answered before any worker is there. The bot takes the result when the job has ended, and asks nobody."""
    tzurot.llm.script("hang")
    room: dict[str, list[str]] = {}
    async with serving(stage, tmp_path) as (http,):
        message = await posted(http, "converse", {"channel": "room", "message": "hello"})
        state = (await http.get(message)).json()["state"]
    async with tzurot.app.worker():
        await until(tzurot.llm.calls, "the run")
        await tzurot.deliver(room)
        assert room == {}
        tzurot.llm.release()
        await tzurot.app.client.await_ended(message.rpartition("/")[2], timeout_s=PATIENCE_S)
        await tzurot.deliver(room)

    assert (state, room) == ("queued", {"room": ["reply of hello"]})


@pytest.mark.scenario("C.14")
async def test_progress_is_visible_through_the_api_and_the_stream_while_the_job_runs(
    stage: Stage, tmp_path: Path
) -> None:
    tzurot.llm.script("hang")
    seen: list[tuple[float, Any, Any]] = []
    async with serving(stage, tmp_path) as (http,), tzurot.app.worker():
        recording = await posted(http, "transcribe", {"recording": "a song"})
        async with http.stream("GET", f"{recording}/events") as answer:
            events = _events(answer)
            for number, part in enumerate(("beginning", "middle", "end")):
                await until(lambda part=part: f"{part} of a song" in tzurot.llm.calls(), part)
                told = await _next(events, "progress")
                job = (await http.get(recording)).json()
                seen.append((told["progress"], told["note"], (job["state"], job["progress"])))
                tzurot.llm.release(number)
            end = await _next(events, "end")
        result = (await http.get(f"{recording}/result")).json()

    assert seen == [
        (10, "beginning", ("running", 10)),
        (50, "middle", ("running", 50)),
        (100, "end", ("running", 100)),
    ]
    assert (end["state"], result) == ("succeeded", "text of a song")


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The kinds and the data of what a stream tells."""
    kind = ""
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


async def _next(events: AsyncIterator[tuple[str, dict[str, Any]]], wanted: str) -> dict[str, Any]:
    """The data of the next event of this kind."""
    async with asyncio.timeout(PATIENCE_S):
        async for kind, data in events:
            if kind == wanted:
                return data
    raise AssertionError(f"the stream ended without {wanted}")
