"""The screens of jobs and of one job, and what can be done there."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

from fencerow import App, Job
from fencerow.core.model.state import State
from fencerow.web.dashboard.roles import Role
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Doorkeeper, Visits
from tests.web.gateway.conftest import ended

NOWHERE = "01a22594-c7d2-7527-b995-5395b2245f0d"


async def submitted(app: App, name: str = "pages", **args: str) -> str:
    return (await app.asubmit_by_name(name, args or {"path": "a.pdf"})).id


async def test_a_search_finds_what_fits_and_its_address_is_all_of_it(app: App, visits: Visits) -> None:
    mail, page = await submitted(app, "mail", to="ada"), await submitted(app)

    both = await visits.see("/jobs")
    one = await visits.see("/jobs?q=queue%3Aletters+state%3Aqueued+after%3A1h")
    by_id = await visits.see(f"/jobs?q={page}")
    none = await visits.see("/jobs?q=before%3A1h")
    odd = await visits.see("/jobs?q=colour%3Ared")

    def shown(found: object) -> set[str]:
        hrefs = {tag.get("href", "") for _, tag in getattr(found, "tags", [])}
        return {each for each in (mail, page) if f"/jobs/{each}" in hrefs}

    assert shown(both) == {mail, page}
    assert (shown(one), shown(by_id), shown(none), shown(odd)) == ({mail}, {page}, set(), set())
    assert "fencerow jobs list" not in one.text and "No job matches" in none.text
    assert "colour:red is not understood" in odd.text and "Nothing is looked for" in odd.text


async def test_pages_follow_each_other_without_a_gap(lite_app: App, visits_lite: Visits) -> None:
    handles = await lite_app.asubmit_many(lite_app.jobs["pages"].call(f"{n}") for n in range(120))
    path, found = "/jobs?q=job%3Apages", list[str]()
    while path:
        page = await visits_lite.see(path)
        hrefs = [
            tag["href"] for name, tag in page.tags if name == "a" and tag.get("href", "").startswith("/jobs/")
        ]
        found += [each.removeprefix("/jobs/") for each in hrefs]
        path = next((tag["href"] for name, tag in page.tags if tag.get("rel") == "next"), "")

    assert found == sorted((each.id for each in handles), reverse=True)


async def test_one_job_tells_all_that_happened_to_it(app: App, visits: Visits) -> None:
    job_id = await submitted(
        app,
        "mail",
        to="ada",
    )
    await ended(app, job_id)
    page = await visits.see(f"/jobs/{job_id}")

    assert "failed" in page.text and "ValueError: nobody is called ada" in page.text
    assert "Submitted by ada" in page.text and "Attempt 1 claimed by" in page.text
    assert "Traceback" in page.text and "1 of 1 failure" in page.text


async def test_secrets_are_hidden_on_the_page_and_kept_in_the_row(lite_app: App, visits_lite: Visits) -> None:
    async def charge(card: dict[str, str], api_key: str, url: str) -> None: ...

    lite_app.job(name="charge")(charge)
    handle = await lite_app.asubmit_by_name(
        "charge",
        {"card": {"cardNumber": "4111"}, "api_key": "k-55", "url": "https://ada:pw77@x.example/"},
    )
    page = await visits_lite.see(f"/jobs/{handle.id}")

    assert not any(secret in page.text for secret in ("4111", "k-55", "pw77"))
    assert "hidden, 4 characters" in page.text and "https://ada:(hidden)@x.example/" in page.text
    assert (await lite_app.client.aget(handle.id)).args["api_key"] == "k-55"


async def test_actions_are_told_with_who_won(app: App, visits: Visits) -> None:
    job_id = await submitted(app)
    path = f"/jobs/{job_id}"

    changed = await visits.press(f"{path}/change", back=path, on=path, priority="5", reason="it hurries")
    same = await visits.press(f"{path}/change", back=path, on=path, priority="5")
    cancelled = await visits.press(f"{path}/cancel", back=path, on=path)
    lost = await visits.press(f"{path}/cancel", back=path, on=path)
    revived = await visits.press(f"{path}/revive", back=path, on=path)
    wrong = await visits.press(f"{path}/change", back=path, on=path, priority="high")

    assert "Changed: priority" in changed.text and "by mara" in changed.text and "it hurries" in changed.text
    assert "Nothing was changed" in same.text
    assert "The job is cancelled" in cancelled.text and "Cancelled by mara" in cancelled.text
    assert "is cancelled" in lost.text and "no longer" not in revived.text
    assert "The job is queued again" in revived.text
    assert "a whole number is expected" in wrong.text
    assert (await app.client.aget(job_id)).state is State.QUEUED


async def test_a_job_that_is_due_later_is_run_now(app: App, visits: Visits) -> None:
    handle = await app.jobs["pages"].using(delay_s=3600).asubmit("a.pdf")
    path = f"/jobs/{handle.id}"
    first = await visits.press(f"{path}/run-now", back=path, on=path)
    again = await visits.press(f"{path}/run-now", back=path, on=path)

    assert "The job is due now" in first.text and "was due already" in again.text


async def test_a_job_that_is_gone_is_a_page_that_says_so(lite_app: App, visits_lite: Visits) -> None:
    page = await visits_lite.see(f"/jobs/{NOWHERE}", status=404)
    no_id = await visits_lite.see("/jobs/x", status=422)
    job_id = await submitted(lite_app)
    await lite_app.client.acancel(job_id)
    removed = await visits_lite.press(f"/jobs/{job_id}/delete", on=f"/jobs/{job_id}")
    other = await submitted(lite_app)
    late = await visits_lite.press(f"/jobs/{job_id}/revive", on=f"/jobs/{other}")

    assert "neither live nor finished" in page.text and "is not an id" in no_id.text
    assert "The job is removed" in removed.text and "there is no job" in late.text


async def test_who_only_reads_sees_no_buttons(lite_app: App, visits_lite: Visits, door: Doorkeeper) -> None:
    job_id = await submitted(lite_app)
    door.role = Role.READ
    page = await visits_lite.see(f"/jobs/{job_id}")

    assert not [tag for name, tag in page.tags if name == "form" and tag.get("method") == "post"]


async def test_why_asks_of_every_condition(app: App, visits: Visits) -> None:
    job_id = await submitted(app)
    await app.client.apause_queue("documents", reason="outage")
    page = await visits.see(f"/jobs/{job_id}/why", statements_max=60)

    assert "Queue is open" in page.text and "outage" in page.text


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits) -> None:
    """In names, queues, keys, tags, metadata, arguments, errors, tracebacks, lines and reasons."""
    ids = [await cursed(lite_app, each) for each in HOSTILE]
    async with asyncio.timeout(PATIENCE_S), lite_app.worker():
        for job_id in ids:
            await lite_app.client.await_ended(job_id)
    for each in HOSTILE:
        await lite_app.client.apause_queue(each[:90], reason=each)

    for path in ("/", "/jobs", *(f"/jobs/{each}" for each in ids), f"/jobs/{ids[0]}/why"):
        is_inert(await visits_lite.see(path, statements_max=60), path)
    for each in HOSTILE:
        is_inert(await visits_lite.see(f"/jobs?{urlencode({'q': each})}"), each)


async def cursed(app: App, text: str) -> str:
    """The id of a job of which everything is this text."""

    async def job(job: Job, given: dict[str, str]) -> None:
        await job.log(text)
        raise ValueError(text)

    app.job(name=text, queue=text[:90], attempts_max=1)(job)
    declared = app.jobs[text].using(key=text, tags=[text], metadata={text: text})
    return (await declared.asubmit({text: text})).id
