"""Part A of the four systems over HTTP: documents whose workers die, freeze or meet a cancel."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from examples.documents.files import FOLDER
from tests.kit.pace import LONG_LEASE_S, PATIENCE_S, slower
from tests.whole.systems import documents
from tests.whole.systems.documents import args, note, places, posted_as
from tests.whole.systems.outside import until
from tests.whole.systems.serving import WAIT_S, posted, result_of, serving
from tests.whole.systems.stage import QUICK, Stage

# What a machine with other work to do may add to a bound; a recovery that does not happen exceeds any.
ALLOWANCE_S = slower(60.0)
COUNT = 24


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Stage]:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("DOCUMENTS_READING", "tests.whole.systems.documents_reading")
    made = Stage(documents, url, monkeypatch)
    await made.open()
    yield made
    await made.close()


async def _batch(http: httpx.AsyncClient, names: list[str]) -> list[str]:
    jobs = [{"job": "extract", "args": args(name)} for name in names]
    answer = await http.post("/v1/jobs:batch", json={"jobs": jobs})
    assert answer.status_code == 202, answer.text
    return [str(each["url"]) for each in answer.json()["jobs"]]


@pytest.mark.prove
@pytest.mark.scenario("A.3")
async def test_of_four_cancels_and_four_claims_exactly_one_wins(stage: Stage, tmp_path: Path) -> None:
    """Four workers take documents from the front, four customers cancel each of them from the back."""
    await stage.open(prefetch_s=0)
    names = [f"document {number}" for number in range(COUNT)]
    async with serving(stage, tmp_path) as (http,):
        addresses = await _batch(http, names)

        async def cancel_all() -> list[str]:
            answers = [
                (each, await http.delete(each, params={"only": "queued"})) for each in reversed(addresses)
            ]
            assert {answer.status_code for _, answer in answers} <= {200, 409}
            return [each for each, answer in answers if answer.status_code == 200]

        workers = [documents.app.worker(slots=1, name=f"w{number}") for number in range(4)]
        working = [asyncio.create_task(worker.run(until_idle=True)) for worker in workers]
        await until(documents.model.calls, "the first run")
        cancels = await asyncio.gather(*(cancel_all() for _ in range(4)))
        await asyncio.gather(*working)
        states = [(await http.get(each)).json()["state"] for each in addresses]

    won = [each for wins in cancels for each in wins]
    assert won and documents.model.calls(), "one side was never first"
    for address, name, state in zip(addresses, names, states, strict=True):
        by_cancel, by_claim = won.count(address), documents.model.calls().count(name)
        assert (by_cancel, by_claim, state) in ((1, 0, "cancelled"), (0, 1, "succeeded"))


@pytest.mark.prove
@pytest.mark.scenario("A.4")
@pytest.mark.timed
async def test_a_claim_stands_while_its_lease_is_fresh_and_is_taken_over_after_it(
    stage: Stage, tmp_path: Path
) -> None:
    lease_s = slower(3.0)
    await stage.open(lease_s=lease_s, renew_s=0.2)
    documents.model.script("hang", "ok")
    async with serving(stage, tmp_path) as (http,):
        contract = await posted(http, "extract", args("contract"))
        with stage.process(tmp_path / "first.log", lease_s=300) as first:
            await until(documents.model.calls, "the first claim")
            async with documents.app.worker() as second:
                await until(lambda: stage.age_s(second.holder) > lease_s + 5 * QUICK["sweep_s"])
            assert documents.model.pids() == [first.pid], "claimed a second time within the lease"
            await stage.freeze(first)
            stage.pass_time(600)
            async with documents.app.worker():
                result = await result_of(http, contract)
            ended = (await http.get(contract)).json()

    assert note(result) == "pages of contract"
    assert (ended["state"], ended["attempt"]) == ("succeeded", 2)
    assert len(documents.model.calls()) == 2


@pytest.mark.prove
@pytest.mark.scenario("A.7")
@pytest.mark.timed
async def test_a_document_whose_worker_was_killed_is_back_within_lease_and_sweep(
    stage: Stage, tmp_path: Path
) -> None:
    lease_s, sweep_s = slower(3.0), 0.5
    settings = {"lease_s": lease_s, "renew_s": 0.2, "sweep_s": sweep_s}
    documents.model.script("hang", "ok")
    async with serving(stage, tmp_path) as (http,):
        with (
            stage.process(tmp_path / "one.log", **settings),
            stage.process(tmp_path / "other.log", **settings),
        ):
            await until(
                lambda: sum(stage.age_s(each.id) > lease_s for each in stage.living_workers()) == 2,
                "two workers that may judge",
            )
            report = await posted(http, "extract", args("report"))
            await until(documents.model.calls, "the first attempt")
            killed_us = stage.now_us()
            os.kill(documents.model.pids()[0], signal.SIGKILL)
            assert note(await result_of(http, report)) == "pages of report"
        ended = (await http.get(report)).json()

    assert (ended["state"], ended["attempt"]) == ("succeeded", 2)
    handle = documents.app.client.handle(ended["id"])
    (reclaimed,) = stage.happenings(handle, "reclaimed")
    assert (reclaimed.at_us - killed_us) / 1e6 <= lease_s + sweep_s + ALLOWANCE_S


@pytest.mark.prove
@pytest.mark.scenario("A.8")
async def test_a_retry_comes_at_its_due_time_though_its_worker_was_killed(
    stage: Stage, tmp_path: Path
) -> None:
    documents.model.script("runtime error", "ok")
    async with serving(stage, tmp_path) as (http,):
        letter = await posted(http, "extract", args("letter"))
        handle = documents.app.client.handle(letter.rpartition("/")[2])
        with stage.process(tmp_path / "worker.log") as worker:
            await until(lambda: stage.happenings(handle, "retried"), "the first failure")
            worker.kill()
            worker.wait()
        due_us = (await handle.arefresh()).run_at_us
        stage.pass_until(due_us)
        await stage.work()
        result = await result_of(http, letter)

    job = await handle.arefresh()
    assert (note(result), job.attempt) == ("pages of letter", 2)
    assert job.claimed_at_us is not None and job.claimed_at_us >= due_us, "it ran before it was due"


@pytest.mark.scenario("A.9")
async def test_a_kill_between_the_stages_loses_neither_the_fields_nor_the_second_stage(
    stage: Stage, tmp_path: Path
) -> None:
    async with serving(stage, tmp_path) as (http,):
        deed = (await http.post("/v1/flows", json=posted_as("deed"))).json()["url"]
        # It wakes no second stage, so it dies between the two.
        with stage.process(tmp_path / "first.log", flows="off", lease_s=LONG_LEASE_S) as worker:
            early = await result_of(http, deed)
            worker.kill()
        assert not documents.boxes.calls()
        async with documents.app.worker():
            late = await http.get(f"{deed}/result", params={"wait_for": "places", "wait": WAIT_S})

    assert (note(early), places(early)) == ("pages of deed", [])
    assert (note(late), places(late)) == ("pages of deed", ["boxes of deed"])
    assert documents.model.calls() == ["deed"], "the first stage ran again"


@pytest.mark.prove
@pytest.mark.scenario("A.15")
@pytest.mark.timed
async def test_each_orphan_runs_once_though_four_reapers_find_it_at_once(
    stage: Stage, tmp_path: Path
) -> None:
    await stage.open(lease_s=slower(3.0), renew_s=0.2)
    orphans = [f"orphan {number}" for number in range(6)]
    documents.model.script(*["hang"] * len(orphans), "ok")
    async with serving(stage, tmp_path) as (http,):
        addresses = await _batch(http, orphans)
        with stage.process(tmp_path / "dead.log", lease_s=30):
            await until(lambda: len(documents.model.calls()) == len(orphans), "the first attempts")
        stage.pass_time(600)
        reapers = [documents.app.worker(name=f"reaper {number}") for number in range(4)]
        await asyncio.gather(*(reaper.start() for reaper in reapers))
        async with asyncio.timeout(2 * PATIENCE_S):
            results = await asyncio.gather(*(result_of(http, each) for each in addresses))
        await asyncio.gather(*(reaper.stop() for reaper in reapers))

    assert [note(each) for each in results] == [f"pages of {orphan}" for orphan in orphans]
    assert sorted(documents.model.calls()) == sorted(orphans * 2), "one run before the death, one after"
