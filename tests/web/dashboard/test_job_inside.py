"""What a job remembers and waits for on its page: steps, signals, its flow; a signal that is sent from there."""

from __future__ import annotations

import asyncio

import pytest

from fencerow import App, Job
from fencerow.web.dashboard.counting import inside
from tests.web.dashboard.visiting import Visits


async def charge(card: str) -> dict[str, str]:
    return {"paid": card, "password": "hunter2"}


async def long() -> str:
    return "x" * 20_000


async def order(job: Job, card: str) -> str:
    await job.step("charge", charge, card)
    await job.step("long", long)
    await job.wait_for("approved", timeout_s=3600)
    return "sent"


async def suspended(app: App, job_id: str) -> None:
    """Until the job waits in its run."""
    async with asyncio.timeout(60), app.worker():
        while not await app.client.awaits(job_id):
            await asyncio.sleep(0.02)


async def test_a_job_tells_its_steps_and_what_it_waits_for_and_takes_a_signal(
    app: App, visits: Visits
) -> None:
    app.job(order)
    job_id = (await app.asubmit_by_name("order", {"card": "visa"})).id
    await suspended(app, job_id)
    path = f"/jobs/{job_id}"
    page, why = await visits.see(path), await visits.see(f"{path}/why", statements_max=60)
    odd = await visits.press(f"{path}/signal", back=path, on=path, name="approved", data="{yes")
    sent = await visits.press(
        f"{path}/signal", back=path, on=path, name="approved", data='{"pin": "swordfish"}', at="1"
    )
    again = await visits.press(
        f"{path}/signal", back=path, on=path, name="approved", data='{"pin": "swordfish"}', at="1"
    )
    async with asyncio.timeout(60), app.worker():
        await app.client.await_ended(job_id)
    done, log = await visits.see(f"{path}?x=1"), await visits.see("/audit")

    assert "It waits for the signal approved , and its time is over in 60 min" in page.text
    assert page.values("name") == ["approved"]
    assert "visa" in page.text and "hunter2" not in page.text and "too long for a page" in page.text
    assert "it waits for the signal 'approved', until" in why.text
    assert "no JSON" in odd.text
    assert "waited for the signal approved" in sent.text and "is kept once" in again.text
    assert "signalled" in log.text and "hidden" in done.text and "swordfish" not in done.text
    assert len(await app.client.asignals(job_id)) == 1


async def test_a_finished_job_goes_on_from_a_step(app: App, visits: Visits) -> None:
    app.job(order)
    job_id = (await app.asubmit_by_name("order", {"card": "visa"})).id
    await app.client.asignal(job_id, "approved", "yes")
    async with asyncio.timeout(60), app.worker():
        await app.client.await_ended(job_id)
    path = f"/jobs/{job_id}"
    odd = await visits.press(f"{path}/revive-from", back=path, on=path, step="nothing")
    revived = await visits.press(f"{path}/revive-from", back=path, on=path, step="long", reason="wrong paper")

    assert "remembers no step" in odd.text
    assert "does anew" in revived.text
    assert [each.name for each in await app.client.asteps(job_id)] == ["charge"]


async def test_a_job_tells_its_place_in_its_flow(app: App, visits: Visits) -> None:
    flow = app.flow("papers")
    scan = flow.add("scan", app.jobs["pages"].call("a.pdf"))
    join = flow.add("join", app.jobs["pages"].call("b.pdf"), needs=[scan])
    flow.add("send", app.jobs["pages"].call("c.pdf"), after=[join])
    handle = await flow.asubmit()
    page = await visits.see(f"/jobs/{(await handle.ajob(join)).id}")

    assert "It waits for 1 job of flow papers : scan" in page.text
    assert "It is join of papers" in page.text
    assert (
        "Before it scan has not ended" in page.text
        and "Behind it send has not ended, in any way" in page.text
    )


async def test_many_steps_are_shown_page_by_page(
    lite_app: App, visits_lite: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "STEPS_SHOWN", 1)
    lite_app.job(order)
    job_id = (await lite_app.asubmit_by_name("order", {"card": "visa"})).id
    await suspended(lite_app, job_id)
    first, second = await visits_lite.see(f"/jobs/{job_id}"), await visits_lite.see(f"/jobs/{job_id}?steps=1")
    await visits_lite.see(f"/jobs/{job_id}?steps=x", status=422)

    assert "More steps" in first.text and "charge" in first.text
    assert "More steps" not in second.text and "too long" in second.text and "First steps" in second.text
