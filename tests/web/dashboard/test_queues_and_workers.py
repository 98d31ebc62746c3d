"""The screens of queues and workers, and what can be done there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fencerow import App
from fencerow.core.model.state import State, WorkerState
from fencerow.web.dashboard import looks
from fencerow.web.dashboard.cost import ROWS_MAX, Cost
from fencerow.web.dashboard.counting import COUNTED_MAX, RECENT_MAX, LiveCount
from fencerow.web.dashboard.screens import queues
from fencerow.web.dashboard.screens.overview import counts_of
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.visiting import Visits

OF_ALL_QUEUES = ("/", "/jobs", "/queues", "/queues/one?name=q1", "/capacity")


async def test_a_queue_is_paused_by_the_visitor_until_it_is_resumed(app: App, visits: Visits) -> None:
    await app.asubmit_by_name("pages", {"path": "a"})
    here = {"back": "/queues", "on": "/queues", "queue": "documents"}
    paused = await visits.press("/queues/pause", reason="outage", **here)
    again = await visits.press("/queues/pause", reason="late", **here)
    overview = await visits.see("/")
    (known,) = await app.client.apaused_queues()
    (audited,) = await app.client.audit.aentries()
    resumed = await visits.press("/queues/resume", **here)
    late = await visits.press("/queues/resume", **here)

    assert (known.paused_by, known.reason) == ("mara", "outage")
    assert (audited.person, audited.via, audited.address) == ("mara", "dashboard", "127.0.0.1")
    assert (audited.verb, audited.targets, audited.detail) == ("paused", ["documents"], {"reason": "outage"})
    assert audited.request_id
    assert "Queue documents is paused" in paused.text and "by mara: “outage”" in paused.text
    assert "was paused already" in again.text
    assert "Queue documents is paused and has jobs" in overview.text and "1 job is queued" in overview.text
    assert "Queue documents goes on" in resumed.text
    assert await app.client.apaused_queues() == [] and "was not paused" in late.text


async def test_shares_are_weighed(lite_app: App, visits_lite: Visits) -> None:
    await lite_app.jobs["pages"].using(share="acme").asubmit("a")
    here = {"back": "/queues/shares", "on": "/queues/shares", "queue": "documents", "share": "acme"}
    done = await visits_lite.press("/queues/weigh", weight="3", reason="they pay", **here)
    wrong = await visits_lite.press("/queues/weigh", weight="many", **here)

    assert "has the weight 3" in done.text and "1 to 1000 is expected" in wrong.text
    assert [each.weight for each in await lite_app.client.shares.aknown()] == [3]
    (entry,) = await lite_app.client.audit.aentries()
    assert entry.detail == {"reason": "they pay", "weight": 3}  # the share itself keeps no reason


async def test_a_worker_is_seen_paused_and_drained(app: App, visits: Visits) -> None:
    async with asyncio.timeout(PATIENCE_S), app.worker(name="mail-1") as worker:
        (record,) = await app.client.workers.afind("mail-1")
        path = f"/workers/{record.id}"
        fleet = await visits.see("/workers")
        paused = await visits.press(f"{path}/pause", back=path, on=path, reason="look at it")
        drained = await visits.press(f"{path}/drain", back=path, on=path)
        await worker.wait_stopped()
    (ended,) = await app.client.workers.aregistered()
    gone = await visits.see("/workers")

    assert "mail-1" in fleet.text and "1 , 0 of" not in fleet.text
    assert (
        "takes no new job from its next renewal on" in paused.text and "by mara: “look at it”" in paused.text
    )
    assert "finishes what it runs" in drained.text
    assert ended.state == WorkerState.RETIRED and "ended by itself" in gone.text


def test_counts_say_where_they_end() -> None:
    live = [
        LiveCount("a", State.QUEUED, COUNTED_MAX + 1, 1_000_000, 9_000_000),
        LiveCount("b", State.QUEUED, 2, None, 9_000_000),
    ]
    found = counts_of(live, {State.FAILED: RECENT_MAX + 1, State.CANCELLED: 0}, 9_000_000)

    assert (found["queued"]["jobs"], found["queued"]["more"]) == (COUNTED_MAX + 2, True)
    assert found["queued"]["first_us"] == 1_000_000
    assert (found["failed"]["jobs"], found["failed"]["more"]) == (RECENT_MAX, True)
    assert (found["running"]["jobs"], found["cancelled"]["more"]) == (0, False)


async def test_as_many_queues_as_one_press_may_change_and_the_next_press_goes_on(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "QUEUES_SHOWN", 2)
    for each in "abc":
        await app.jobs["pages"].using(queue=each).asubmit("a.pdf")
    await app.client.apause_queue("c")
    seen = await visits.see("/queues")
    await app.client.aresume_queue("c")
    told = []
    for way in ("pause-all", "pause-all", "resume-all", "resume-all"):
        page = await visits.press(f"/queues/{way}", back="/queues", on="/queues")
        told.append(
            (len(await app.client.apaused_queues()), "1 queue more were left: press again" in page.text)
        )

    assert {"Pause all queues", "Resume all queues"} <= set(seen.texts), "the paused one is not shown"
    assert told == [(2, True), (3, False), (1, True), (0, False)]


async def test_pages_of_all_queues_are_seen_also_with_more_of_them_than_other_pages_have_rows(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(statements_max: int, rows_max: int = ROWS_MAX, **others: Any) -> Cost:
        return Cost(statements_max, rows_max // 100, **others)

    monkeypatch.setattr(looks, "Cost", small)
    for number in range(12):
        await app.jobs["pages"].using(queue=f"q{number}").asubmit("a.pdf")
        await app.client.apause_queue(f"q{number}")
    seen = [await visits.see(path) for path in OF_ALL_QUEUES]

    assert "7 more paused queues have jobs" in seen[0].text
    assert seen[0].values("queue") == ["q0", "q1", "q10", "q11", "q2"]


async def test_all_queues_are_paused_and_go_on_together(app: App, visits: Visits) -> None:
    await app.jobs["pages"].asubmit("a.pdf")
    await app.jobs["mail"].asubmit("ada")
    await app.client.apause_queue("letters", reason="mine")
    paused = await visits.press("/queues/pause-all", back="/queues", on="/queues", reason="deploy")
    known = {each.name: each.reason for each in await app.client.apaused_queues()}
    resumed = await visits.press("/queues/resume-all", back="/queues", on="/queues")

    assert "1 queue paused" in paused.text and known == {"documents": "deploy", "letters": "mine"}
    assert "2 queues went on" in resumed.text and await app.client.apaused_queues() == []
