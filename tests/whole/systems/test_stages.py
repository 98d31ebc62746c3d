"""Parts A and C of the four systems: what has stages, and what waits for several."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.pace import LONG_LEASE_S, PATIENCE_S
from tests.whole.systems import flydocs_stages as flydocs
from tests.whole.systems import tzurot_flow as tzurot
from tests.whole.systems.outside import until
from tests.whole.systems.stage import Stage


@pytest.fixture
async def documents(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(flydocs, url, monkeypatch)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def messages(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(tzurot, url, monkeypatch)
    await made.open()
    yield made
    await made.close()


@pytest.mark.scenario("A.9")
async def test_a_kill_between_the_stages_loses_neither_result_nor_second_stage(
    documents: Stage, tmp_path: Path
) -> None:
    handle = await flydocs.reading("deed").asubmit()
    # It wakes no second stage, so it dies between the two.
    with documents.process(tmp_path / "first.log", flows="off", lease_s=LONG_LEASE_S) as worker:
        first = await handle.ajob_named("text")
        assert await first.aresult(timeout_s=PATIENCE_S) == "pages of deed"
        worker.kill()

    assert await handle.aresult() == "pages of deed"
    assert not flydocs.boxes.calls()
    async with flydocs.app.worker():
        refined = await handle.aresult(wait_for="boxes", timeout_s=PATIENCE_S)

    assert refined == "boxes of deed"
    assert flydocs.model.calls() == ["deed"], "the first stage ran again"


@pytest.mark.scenario("A.10")
async def test_a_second_stage_that_fails_leaves_the_first_ones_result(documents: Stage) -> None:
    flydocs.boxes.script("runtime error")
    handle = await flydocs.reading("deed").asubmit()
    async with flydocs.app.worker():
        await handle.await_ended(timeout_s=PATIENCE_S)

    stages = {each.name: each for each in await handle.ajobs()}
    second = await (await handle.ajob_named("boxes")).arefresh()
    assert (stages["text"].state, stages["boxes"].state) == ("succeeded", "failed")
    assert flydocs.boxes.calls() == ["deed"] * 3
    assert second.error is not None and second.error["code"] == "attempts_exhausted"
    assert await handle.aresult(wait_for="boxes", timeout_s=0) == "pages of deed"


@pytest.mark.scenario("C.6")
async def test_a_parent_runs_with_two_results_and_an_error_of_children_side_by_side(messages: Stage) -> None:
    tzurot.looking.script("hang")
    tzurot.audio.script("value error")
    handle = await tzurot.answering(["cat.png", "song.ogg", "dog.png"]).asubmit()
    async with tzurot.app.worker():
        await until(lambda: len(tzurot.looking.calls()) == 2 and tzurot.audio.calls(), "all three at once")
        tzurot.looking.release()
        answer = await (await handle.ajob_named("answer")).aresult(timeout_s=PATIENCE_S)

    assert answer == ["looking of cat.png", "audio: value error at song.ogg", "looking of dog.png"]
