"""Part A of the four systems: groups of the bus that hear of documents which came over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from examples.documents.files import FOLDER
from fencerow.core.model.ids import new_id
from tests.kit.pace import LONG_LEASE_S
from tests.whole.systems import documents_heard
from tests.whole.systems.documents import args
from tests.whole.systems.outside import until
from tests.whole.systems.serving import serving
from tests.whole.systems.stage import Stage

COUNT = 20


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Stage]:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("DOCUMENTS_READING", "tests.whole.systems.documents_reading")
    made = Stage(documents_heard, url, monkeypatch)
    await made.open(lease_s=LONG_LEASE_S)
    yield made
    await made.close()


@pytest.mark.prove
@pytest.mark.scenario("A.1")
@pytest.mark.scenario("A.2")
async def test_two_processes_of_two_groups_hear_of_each_document_once_in_each_group_and_in_order(
    stage: Stage, tmp_path: Path
) -> None:
    heard = documents_heard.heard
    async with serving(stage, tmp_path) as (http,), documents_heard.app.worker():
        with stage.process(tmp_path / "other.log", lease_s=LONG_LEASE_S):
            await _groups_are_there(http)
            ids = await _posted(http)
            for each in heard.values():
                await until(lambda each=each: len(each.calls()) >= COUNT, "what the group hears")

    for each in heard.values():
        events, told_of = zip(*(call.split() for call in each.calls()), strict=True)
        assert sorted(told_of) == sorted(ids), "each once"
        assert list(map(int, events)) == sorted(map(int, events)), "in the order of the log"


@pytest.mark.prove
@pytest.mark.scenario("A.16")
async def test_an_event_that_nobody_can_take_is_parked_and_those_after_it_are_heard(
    stage: Stage, tmp_path: Path
) -> None:
    heard = documents_heard.heard
    documents_heard.poison.add(("billing", bad := new_id()))
    async with serving(stage, tmp_path) as (http,), documents_heard.app.worker():
        await _groups_are_there(http)
        ids = await _posted(http, bad)
        await until(lambda: len(heard["billing"].calls()) >= COUNT + 2, "those behind it")
        await until(lambda: len(heard["search"].calls()) >= COUNT, "the other group")

        async def parked() -> list[dict[str, object]]:
            answer = await http.get("/v1/events/parked", params={"group": "billing"})
            return list(answer.json()["parked"])

        await until(parked, "the parked one")
        (poison,) = await parked()

    told_of = [call.split()[1] for call in heard["billing"].calls()]
    assert told_of.count(bad) == 3, "three deliveries, and no more"
    assert sorted(set(told_of)) == sorted(ids) and len(told_of) == COUNT + 2
    assert bad in str(poison)


async def _groups_are_there(http: httpx.AsyncClient) -> None:
    """What is posted before that is told to nobody."""

    async def known() -> bool:
        groups = (await http.get("/v1/events/groups")).json()["groups"]
        return {each["name"] for each in groups} >= set(documents_heard.heard)

    await until(known, "the groups")


async def _posted(http: httpx.AsyncClient, *own: str) -> list[str]:
    """Twenty documents, the first ones under these ids."""
    jobs = [{"job": "extract", "args": args(f"document {number}")} for number in range(COUNT)]
    jobs = [{**job, "id": given} for job, given in zip(jobs, own, strict=False)] + jobs[len(own) :]
    answer = await http.post("/v1/jobs:batch", json={"jobs": jobs})
    assert answer.status_code == 202, answer.text
    return [str(each["id"]) for each in answer.json()["jobs"]]
