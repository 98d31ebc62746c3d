"""What the doctor finds, in the dashboard."""

from __future__ import annotations

from fencerow import App
from fencerow.core.finding import fail, info, ok
from fencerow.web.dashboard.cost import Cost
from fencerow.web.dashboard.problems import Problems
from fencerow.web.dashboard.redacting import Redactor
from fencerow.web.dashboard.screen import Look
from fencerow.web.dashboard.screens.health import health
from tests.web.dashboard.visiting import Visits


async def test_all_that_the_doctor_looks_at_is_told(lite_app: App, visits_lite: Visits) -> None:
    await lite_app.asubmit_by_name("pages", {"path": "a"})
    await lite_app.client.apause_queue("documents")
    page = await visits_lite.see("/health")

    assert "Problems and what to do" in page.text and "What is well" in page.text
    assert "Paused queue" in page.text and "What to do: " in page.text


async def test_the_worst_comes_first(lite_app: App) -> None:
    await lite_app.asubmit_by_name("pages", {"path": "a"})
    problems = Problems(lambda: [ok("disk", "fine"), info("size", "much"), fail("clock", "wrong", "set it")])
    found = await health(Look(lite_app, {}, {}, Cost(), problems, Redactor()))

    assert [each.name for each in found["told"]] == ["clock", "size"]
    assert [each.name for each in found["well"]] == ["disk"] and found["wrong"] == 1
