"""Approvals in the dashboard: what waits for a person, and the answer of who is logged in."""

from __future__ import annotations

import pytest

from fencerow import App
from fencerow.web.dashboard.counting import approvals as counting
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screens import approvals
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Doorkeeper, Visits

AT = "https://jobs.example.com"


async def asked(
    app: App, asks: str = "Pay 500 EUR?", *, signal: str = "paid", **more: float
) -> tuple[str, str]:
    """A job, and what it asks a person."""
    job = await app.asubmit_by_name("pages", {"path": "a"})
    return job.id, (await app.client.aapproval(job.id, signal, asks, base_url=AT, **more)).id


async def test_a_person_answers_once_and_the_audit_log_says_who(app: App, visits: Visits) -> None:
    job_id, own = await asked(app)
    other = await app.client.aapproval(job_id, "paid", "Pay 500 EUR, too?", base_url=AT)
    page = await visits.see("/approvals")
    here = {"back": "/approvals", "on": "/approvals"}
    done = await visits.press("/approvals/approve", approval=own, reason="it fits", **here)
    here["on"] = f"/jobs/{job_id}"
    late = [await visits.press("/approvals/refuse", approval=each, **here) for each in (own, other.id)]
    of_job = await visits.see(f"/approvals?job={job_id}")
    (sent,) = await app.client.asignals(job_id)
    (audited,) = [each for each in await app.client.audit.aentries() if each.verb == "answered"]

    assert "Pay 500 EUR?" in page.text and f"/jobs/{job_id}" in {tag.get("href") for _, tag in page.tags}
    assert "You have approved it" in done.text and "Nothing waits for a person" in done.text
    assert all("can no longer be answered" in each.text for each in late)
    assert sent.data == {"yes": True, "approval": own} and sent.sent_by == "mara"
    assert "Approved" in of_job.text and "Answered by another address" in of_job.text
    assert (audited.person, audited.via, audited.verb) == ("mara", "dashboard", "answered")


async def test_who_may_only_look_answers_nothing(
    lite_app: App, visits_lite: Visits, door: Doorkeeper
) -> None:
    job_id, own = await asked(lite_app)
    form = await visits_lite.token("/approvals")
    door.role = Role.READ
    page = await visits_lite.see("/approvals")
    refused = await visits_lite.send("/approvals/approve", form=form, approval=own)

    assert "Pay 500 EUR?" in page.text and not page.values("approval")
    assert refused.status_code == 403 and await lite_app.client.asignals(job_id) == []


async def test_what_nobody_can_answer_any_more_is_not_shown(lite_app: App, visits_lite: Visits) -> None:
    gone, _ = await asked(lite_app, "Of a job that has ended?")
    await lite_app.client.acancel(gone)
    _, live = await asked(lite_app, "Of one that lives?")
    page = await visits_lite.see("/approvals")
    here = {"back": "/approvals", "on": "/approvals"}
    unknown = await visits_lite.press("/approvals/approve", approval=gone, **here)

    assert "Of one that lives?" in page.text and page.values("approval") == [live, live]
    assert "nothing is asked under this address" in unknown.text
    assert "Its job has ended" in (await visits_lite.see(f"/approvals?job={gone}")).text
    await visits_lite.see("/approvals?job=x", status=422)
    await visits_lite.see("/approvals?after=1-x", status=422)


async def test_they_come_a_page_at_a_time_what_expires_first_stands_first(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "PAGE", 2)
    for name, expires_s in (("last", 5000.0), ("first", 1000.0), ("middle", 3000.0)):
        await asked(app, name, expires_s=expires_s)
    path, found = "/approvals", []
    for _ in range(2):
        page = await visits.see(path)
        found.append([text.strip() for text in page.texts if text.strip() in ("first", "middle", "last")])
        path = next((tag["href"] for _, tag in page.tags if tag.get("rel") == "next"), "")

    assert (found, path) == ([["first", "middle"], ["last"]], "")


async def test_a_page_looks_at_so_many_and_says_so(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "LOOK", 2)
    for n in range(3):
        gone, _ = await asked(app, f"gone {n}", expires_s=100.0 + n)
        await app.client.acancel(gone)
    await asked(app, "Of one that lives?")
    first = await visits.see("/approvals")
    behind = next(tag["href"] for _, tag in first.tags if tag.get("rel") == "next")
    second = await visits.see(behind)

    assert "Look further" in first.text and "Of one that lives?" not in first.text
    assert "Of one that lives?" in second.text


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits) -> None:
    for each in HOSTILE:
        await asked(lite_app, each, signal=each[:100])
    is_inert(await visits_lite.see("/approvals"), "all")
    for each in HOSTILE[:2]:
        await visits_lite.see(f"/approvals?job={each[:20]}".replace("#", ""), status=422)
