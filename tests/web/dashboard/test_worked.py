"""Jobs worked over HTTP in the dashboard: endpoints, callbacks that are waited for, and late ones."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fencerow import App
from fencerow.testing import adrain
from fencerow.testing.clock import clock_of
from fencerow.web.dashboard.counting.worked import WorkedLately
from fencerow.web.dashboard.screens import worked
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.test_jobs import cursed
from tests.web.dashboard.visiting import Visits
from tests.web.worked.stage import (
    LATER,
    SECRET,
    SECRET_ENV,
    Endpoint,
    config_for,
    endpoint_serving,
    render_job,
)

ATTEMPT = """
INSERT INTO fencerow_worked_attempts
    (job_id, attempt, digest, sent_at, failures, until, give_up_at, silent_s, deferred, look_at)
SELECT id, 1, 'x', run_at, 0, run_at, run_at, 60, 1, run_at FROM fencerow_jobs
"""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv(SECRET_ENV, SECRET)
    with endpoint_serving() as made:
        yield made


@pytest.fixture
async def app(url: str, endpoint: Endpoint) -> AsyncIterator[App]:
    async with App(url, config=config_for(endpoint)) as made:
        yield made


async def test_who_waits_for_a_callback_is_shown_and_who_is_late(
    app: App, visits: Visits, endpoint: Endpoint
) -> None:
    render = render_job(app, endpoint, later=True, answer_s=600)
    endpoint.replies(LATER)
    job_id = (await render.asubmit("a.pdf")).id
    await adrain(app)
    page = await visits.see("/worked")
    clock_of(app.engine).advance(700)
    late = await visits.see("/worked?at=later")

    assert f"{endpoint.url}" in page.text and "1 in all" in page.text and "Problems" not in page.text
    assert f"/jobs/{job_id}" in {tag.get("href") for _, tag in page.tags}
    assert "late, for" in late.text and "1 attempt overdue" in late.text and "no worker wakes" in late.text
    await visits.see("/worked?after=1-x", status=422)


async def test_they_come_a_page_at_a_time(
    app: App, visits: Visits, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worked, "PAGE", 1)
    render = render_job(app, endpoint, later=True)
    endpoint.replies(LATER)
    ids = [(await render.asubmit(name)).id for name in ("a", "b")]
    await adrain(app)
    path, found = "/worked", []
    for _ in ids:
        page = await visits.see(path)
        found += [each for each in ids if f"/jobs/{each}" in {tag.get("href") for _, tag in page.tags}]
        path = next((tag["href"] for _, tag in page.tags if tag.get("rel") == "next"), "")

    assert sorted(found) == sorted(ids) and path == ""


def test_an_endpoint_of_which_most_fails_is_a_problem() -> None:
    few = WorkedLately("render", 6, 0, 0, 2, 0, 3, 1, 1)
    fine = WorkedLately("render", 6, 0, 0, 3, 0, 3, 0, 1)

    (found,) = worked.problems_of(0, 0.0, [few])
    assert "3 failed by the callback and 1 were never answered" in found.found
    assert list(worked.problems_of(0, 0.0, [fine])) == []


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits, sqlite_path: Path) -> None:
    for each in HOSTILE[:12]:
        await cursed(lite_app, each)
    with sqlite3.connect(sqlite_path) as connection:
        made = connection.execute(ATTEMPT).rowcount
    connection.close()
    page = await visits_lite.see("/worked")

    assert made and "late, for" in page.text
    is_inert(page, "all")
