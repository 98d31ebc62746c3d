"""One job: what stands around it, and what happens to the page when the job does something odd meanwhile."""

from __future__ import annotations

import pytest

from fencerow import App
from fencerow.events import NewEvent, apublish_many
from fencerow.events.groups import GroupStart, make_group
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screens import job
from tests.web.dashboard.visiting import Doorkeeper, Visits
from tests.web.gateway.conftest import ended

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HEADERS = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "correlation-id": "req-17"}


async def test_its_end_and_the_events_of_its_request_are_found(app: App, visits: Visits) -> None:
    await app.asubmit_by_name("pages", {"path": "first"})  # an app makes its tables when it is first used
    await app.engine.arun(make_group("billing", ["job.*"], partitions=1, start=GroupStart("end")))
    handle = await app.jobs["pages"].using(headers=HEADERS).asubmit("a.pdf")
    await apublish_many(
        app,
        [
            NewEvent("order.paid", {}, "ada", {"correlation-id": "req-17"}),
            NewEvent("order.sent", {}, "bob", {"traceparent": f"00-{TRACE}-aaaaaaaaaaaaaaaa-01"}),
            NewEvent("order.lost", {}, "eve", {"correlation-id": "req-18"}),
        ],
    )
    before = await visits.see(f"/jobs/{handle.id}/around")
    await ended(app, handle.id)
    page, job_page = await visits.see(f"/jobs/{handle.id}/around?x=1"), await visits.see(f"/jobs/{handle.id}")

    assert "order.paid" in before.text and "order.sent" in before.text and "order.lost" not in before.text
    assert "It has not ended, so nobody was told" in before.text and "req-17" in before.text
    assert "job.succeeded" in page.text and TRACE in page.text
    assert any(tag.get("aria-label", "").endswith("now succeeded") for _, tag in job_page.tags)


async def test_a_huge_result_is_cut_and_told(lite_app: App, visits_lite: Visits) -> None:
    async def huge() -> list[dict[str, str]]:
        return [{"n": str(n)} for n in range(50_000)]

    lite_app.job(name="huge")(huge)
    job_id = (await lite_app.asubmit_by_name("huge", {})).id
    await ended(lite_app, job_id)
    page = await visits_lite.see(f"/jobs/{job_id}")

    assert "cut here: it is longer" in page.text and len(page.text) < 200_000


@pytest.mark.parametrize("path", ["", "/why", "/around"])
async def test_a_job_that_is_purged_or_moved_while_it_is_looked_at_is_no_fault(
    app: App, door: Doorkeeper, visits: Visits, board: Dashboard, path: str
) -> None:
    handle = await app.asubmit_by_name("pages", {"path": "a"})
    await visits.see(f"/jobs/{handle.id}{path}", statements_max=60)
    await app.client.achange(handle.id, queue="renamed")
    moved = await visits.see(f"/jobs/{handle.id}{path}?moved=1", statements_max=60)
    await app.client.acancel(handle.id)
    await app.client.adelete(handle.id)
    gone = await visits.see(f"/jobs/{handle.id}{path}?gone=1", status=404)
    door.role = Role.READ

    assert path == "/around" or "renamed" in moved.text
    assert "neither live nor finished" in gone.text


async def test_lines_that_are_too_many_are_cut_and_told(
    lite_app: App, visits_lite: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "EVENTS_MAX", 1)
    handle = await lite_app.asubmit_by_name("pages", {"path": "a"})
    await lite_app.client.achange(handle.id, priority=3)
    page = await visits_lite.see(f"/jobs/{handle.id}")

    assert "Only the first" in page.text
