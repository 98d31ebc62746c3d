"""What the doctor finds, in the dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from fencerow import App
from fencerow.core.config import CoreConfig
from fencerow.core.finding import fail, info, ok, warn
from fencerow.core.model.person import Person, Via
from fencerow.doctor.canary.trial import Trial
from fencerow.web.dashboard import canary
from fencerow.web.dashboard.cost import Cost
from fencerow.web.dashboard.problems import Problems
from fencerow.web.dashboard.redacting import Redactor
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Look
from fencerow.web.dashboard.screens.health import health
from fencerow.web.dashboard.screens.overview import alike
from tests.web.dashboard.visiting import Doorkeeper, Visits


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


async def test_an_administrator_sends_a_canary_and_the_page_shows_what_it_measures(
    lite_app: App, visits_lite: Visits, door: Doorkeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Person] = []
    over = asyncio.Event()

    async def sent(_config: CoreConfig, person: Person, *, tell: Callable[[Trial], None]) -> Trial:
        asked.append(person)
        trial = Trial(job_id="a", lease_s=30, sweep_s=15, sent_us=0, killed_us=10_000_000)
        tell(trial)
        await over.wait()
        return msgspec.structs.replace(trial, reclaimed_us=50_000_000, done_us=51_000_000)

    monkeypatch.setattr(canary, "send", sent)
    door.role = Role.ADMIN
    form = await visits_lite.token("/health")
    await visits_lite.send("/health/canary", form=form, back="/health", reason="to see")
    under_way = await visits_lite.see("/health")
    await visits_lite.send("/health/canary", form=form, back="/health")
    second = await visits_lite.see("/health")
    over.set()
    await asyncio.sleep(0)
    after = await visits_lite.see("/health?after=1")

    assert "The canary is under way" in under_way.text and "not measured: it is under way" in under_way.text
    assert "a canary is under way" in second.text.lower() and len(asked) == 1
    assert "As promised: 40.0 s from the kill to the reclaim" in after.text
    assert (asked[0].name, asked[0].via, asked[0].reason) == ("mara", Via.DASHBOARD, "to see")


async def test_no_canary_is_sent_under_maintenance(
    lite_app: App, visits_lite: Visits, door: Doorkeeper
) -> None:
    door.role = Role.ADMIN
    await lite_app.client.maintenance.abegin(reason="a move")
    page = await visits_lite.press("/health/canary", on="/health", back="/health")

    assert "under maintenance" in page.text and "None was sent from here" in page.text


def test_what_the_doctor_says_of_several_things_stands_together() -> None:
    found = [
        warn("unknown job", each, fix) for each, fix in (("a", "deploy"), ("b", "deploy"), ("c", "wait"))
    ]

    assert [[each.found for each in kind] for kind in alike(found)] == [["a", "b"], ["c"]]
