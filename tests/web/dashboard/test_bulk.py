"""Bulk actions: what is shown before is what is done, once, in portions, and told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fencerow import App
from fencerow.core.model.state import State
from fencerow.web.dashboard.bulk import counting, doing
from fencerow.web.dashboard.bulk.meaning import meant_by, packed, unpacked
from fencerow.web.dashboard.bulk.verbs import VERBS
from fencerow.web.dashboard.roles import Role
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Doorkeeper, Reader, Visits
from tests.web.gateway.conftest import ended

SEARCH = "/jobs/bulk?verb={}&q=queue%3Adocuments"


async def submitted(app: App, count: int, name: str = "pages") -> list[str]:
    handles = await app.asubmit_many(app.jobs[name].call(f"{n}") for n in range(count))
    return [each.id for each in handles]


async def states(app: App, ids: Sequence[str]) -> list[str]:
    return [(await app.client.aget(each)).state.value for each in ids]


def fields(page: Reader) -> dict[str, str]:
    """What the form that does it sends along."""
    wanted = {"verb", "value", "q", "ids", "at", "sofar", "expected", "below", "form"}
    return {
        tag["name"]: tag["value"] for name, tag in page.tags if name == "input" and tag.get("name") in wanted
    }


async def confirmed(visits: Visits, page: Reader, **more: str) -> Reader:
    answer = await visits.send("/jobs/bulk", back="/jobs", reason="outage", **(fields(page) | more))
    assert answer.status_code == 303
    return await visits.see(answer.headers["location"], statements_max=320)


async def preview(visits: Visits, path: str) -> Reader:
    return await visits.see(path, statements_max=320)


async def test_a_whole_search_is_shown_then_done_and_audited(app: App, visits: Visits) -> None:
    ids, mail = await submitted(app, 25), await submitted(app, 1, "mail")
    page = await preview(visits, SEARCH.format("cancel"))
    later = await submitted(app, 1)
    told = await confirmed(visits, page)

    assert "with queue documents" in page.text and "queued 25 cancelled at once" in page.text
    assert sum(tag.get("href", "").startswith("/jobs/0") for _, tag in page.tags) == 20
    assert "Cancel jobs: 25 cancelled." in told.text
    assert await states(app, [*ids, *mail, *later]) == ["cancelled"] * 25 + ["queued"] * 2
    (entry,) = await app.client.audit.aentries()
    assert (entry.person, entry.verb, sorted(entry.targets)) == ("mara", "cancelled", sorted(ids))
    assert entry.detail["reason"] == "outage"


async def test_chosen_jobs_are_shown_with_who_is_left_and_why(app: App, visits: Visits) -> None:
    (failed,) = await submitted(app, 1, "mail")
    await ended(app, failed)
    (waits,) = await submitted(app, 1)
    form = await visits.token("/jobs")
    answer = await visits.send(
        "/jobs/choose", form=form, back="/jobs", verb="revive", whom="chosen",
        **{f"id:{waits}": "on", f"id:{failed}": "on"},
    )  # fmt: skip
    page = await preview(visits, answer.headers["location"])
    told = await confirmed(visits, page)

    assert "Nothing is changed yet" in page.text and "2 that were chosen" in page.text
    assert "stay: only jobs that have ended are revived" in page.text
    assert "1 revived; 1 left: 1 were queued" in told.text
    assert await states(app, [failed]) == ["queued"]


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"revive", "delete"}))
async def test_a_form_that_is_sent_twice_is_done_once(app: App, visits: Visits, verb: str) -> None:
    value = {"priority": "7", "queue": "elsewhere"}.get(verb, "")
    ids = await submitted(app, 3)
    page = await preview(visits, f"{SEARCH.format(verb)}&value={value}")
    sent = fields(page) | {"reason": "outage", "back": "/jobs"}
    answers = await asyncio.gather(*(visits.send("/jobs/bulk", **sent) for _ in range(3)))

    assert len({answer.headers["set-cookie"] for answer in answers}) == 1  # all are told the same
    entries = await app.client.audit.aentries()
    assert sum(len(each.targets) for each in entries) == (0 if verb == "run-now" else len(ids))


async def test_a_job_that_was_revived_since_the_preview_is_left(app: App, visits: Visits) -> None:
    """So a form that is sent again, by whichever process, revives or deletes nothing twice."""
    (job_id,) = await submitted(app, 1, "mail")
    await ended(app, job_id)
    search = "/jobs/bulk?verb={}&q=queue%3Aletters"
    shown = [await preview(visits, search.format(verb)) for verb in ("revive", "delete")]
    await app.client.arevive(job_id)
    await ended(app, job_id)
    told = [(await confirmed(visits, page)).text for page in shown]

    assert all("1 job of the preview no longer matched" in each for each in told)
    assert (await app.client.aget(job_id)).state is State.FAILED


async def test_it_goes_on_where_it_stopped_and_tells_the_sum(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doing, "BATCH", 2)
    monkeypatch.setattr(doing, "PRESS_S", -1.0)
    ids = await submitted(app, 5)
    first = await confirmed(visits, await preview(visits, SEARCH.format("priority") + "&value=9"))
    second = await confirmed(visits, first)
    halfway = [(await app.client.aget(each)).priority for each in sorted(ids)]
    last = await confirmed(visits, second)

    assert "So far: 2 changed. More jobs are left" in first.text and "So far: 4 changed" in second.text
    assert halfway == [0, 9, 9, 9, 9]
    assert "Change the priority of jobs: 5 changed." in last.text


async def test_a_count_that_would_take_too_long_says_more_than(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await submitted(app, 5)
    await app.client.acancel(ids[0])
    monkeypatch.setattr(counting, "PORTION", 2)
    exact = await preview(visits, SEARCH.format("cancel") + "&exact=1")
    monkeypatch.setattr("fencerow.web.dashboard.screens.bulk.BRIEF_LOOKS", 2)
    brief = await preview(visits, SEARCH.format("cancel"))

    assert "Changed 4" in exact.text and "cancelled 1 stay: they have ended" in exact.text
    assert "Changed more than 4" in brief.text and "Count exactly" in brief.text
    assert "expected" in fields(brief) and fields(brief)["expected"] == ""


@pytest.mark.parametrize(
    "search", ["tag:eu", "meta:n=1", "job:pages", "key:k-1", "before:0s", "state:queued"]
)
async def test_what_is_counted_is_what_a_search_finds(app: App, visits: Visits, search: str) -> None:
    declared = app.jobs["pages"].using(tags=["eu", "x"], metadata={"n": 1}, key="k-1")
    await declared.asubmit("a.pdf")
    await submitted(app, 2)
    found = await visits.see(f"/jobs?q={search}")
    page = await preview(visits, f"/jobs/bulk?verb=cancel&q={search}")

    shown = sum(tag.get("name", "").startswith("id:") for _, tag in found.tags)
    assert f"Changed {shown} " in page.text and shown


@pytest.mark.prove
async def test_ten_thousand_jobs_leave_one_entry_for_each_portion(app: App, visits: Visits) -> None:
    await submitted(app, 10_000)
    page = await preview(visits, SEARCH.format("cancel"))
    while fields(page).get("at"):
        page = await confirmed(visits, page)
    entries = await app.client.audit.aentries(limit=1_000)

    assert "10,000 cancelled" in page.text
    assert len(entries) == 20 and sum(len(each.targets) for each in entries) == 10_000


REFUSED = {
    "every job there is": {"verb": "cancel", "q": ""},
    "a search that nobody understands": {"verb": "cancel", "q": "colour:red"},
    "an unknown verb": {"verb": "drop", "q": "queue:documents"},
    "a choice that is cut": {"verb": "cancel", "ids": "abc"},
    "no reason": {"verb": "cancel", "q": "queue:documents", "reason": ""},
    "no preview": {"verb": "cancel", "q": "queue:documents", "at": ""},
    "a preview of another day": {"verb": "cancel", "q": "queue:documents", "at": "1700000000000000"},
    "a preview that is to come": {"verb": "cancel", "q": "queue:documents", "at": "9999999999999999"},
    "no whole number": {"verb": "priority", "q": "queue:documents", "value": "high"},
}


@pytest.mark.parametrize("asked", REFUSED.values(), ids=REFUSED)
async def test_what_is_unclear_changes_nothing(
    lite_app: App, visits_lite: Visits, asked: dict[str, str]
) -> None:
    ids = await submitted(lite_app, 2)
    page = await preview(visits_lite, SEARCH.format("cancel"))
    known: dict[str, Any] = {"form": fields(page)["form"], "at": fields(page)["at"], "reason": "outage"}
    answer = await visits_lite.send("/jobs/bulk", back="/jobs", **(known | asked))
    told = await visits_lite.see(answer.headers["location"])

    assert answer.status_code == 303 and "told refused" in str([tag.get("class") for _, tag in told.tags])
    assert await states(lite_app, ids) == ["queued"] * 2


async def test_hostile_searches_are_inert_and_readers_get_no_form(
    lite_app: App, visits_lite: Visits, door: Doorkeeper
) -> None:
    door.role = Role.READ
    for text in HOSTILE:
        search = {"verb": "cancel", "q": f'queue:"{text}"'.replace("\0", "")}
        answer = await visits_lite.client.get("/jobs/bulk", params=search)
        is_inert(visits_lite.read(answer), text)
        assert 'method="post"' not in answer.text


def test_a_choice_survives_its_address() -> None:
    ids = tuple(f"01a22594-c7d2-7527-b995-5395b2245f{n:02x}" for n in range(50))

    assert unpacked(packed(ids)) == ids and len(packed(ids)) < 1_100
    assert meant_by({"verb": "cancel", "ids": packed(ids)}).ids == ids
