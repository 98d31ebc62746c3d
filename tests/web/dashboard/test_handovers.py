"""Handovers in the dashboard: what is not confirmed, and an administrator who confirms it."""

from __future__ import annotations

import asyncio
from typing import cast

from fencerow import App
from fencerow.web.dashboard.roles import Role
from tests.handovers import stage
from tests.kit.jobs import AnyEngine
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Doorkeeper, Visits


def engine_of(app: App) -> AnyEngine:
    """Whose statements the stage runs."""
    return cast("AnyEngine", app.engine)


async def test_an_end_is_confirmed_in_the_place_of_its_receiver(
    app: App, visits: Visits, door: Doorkeeper
) -> None:
    await app.asubmit_by_name("pages", {"path": "a"})  # an app makes its tables when it is first used
    ended, live = await asyncio.to_thread(stage.line, engine_of(app), 2)
    await asyncio.to_thread(stage.end, engine_of(app), ended, how="cancel")
    other = await visits.see("/handovers?receiver=nobody")
    refused = await visits.send(
        "/handovers/confirm", form=await visits.token(f"/jobs/{live}"), receiver="bot", job=ended
    )
    door.role = Role.ADMIN
    here = {"back": "/handovers", "on": "/handovers", "receiver": "bot"}
    page = await visits.see("/handovers")
    done = await visits.press("/handovers/confirm", job=ended, **here)
    known = await app.client.handovers("bot").aget(ended)
    (audited,) = await app.client.audit.aentries()
    here["on"] = f"/jobs/{live}"
    early = await visits.press("/handovers/confirm", job=live, **here)
    late = await visits.press("/handovers/confirm", job=ended, **here)

    assert "No handover that is not confirmed matches" in other.text and refused.status_code == 403
    assert "2 in all, 1 with a job that has ended" in page.text and "to be taken" in page.text
    assert f"/jobs/{ended}" in {tag.get("href") for _, tag in page.tags}
    assert "It is confirmed" in done.text and "1 in all, 0 with" in done.text and known.confirmed_by == "mara"
    assert (audited.person, audited.kind, audited.targets) == ("mara", "handover", [ended])
    assert "has not ended" in early.text and "was confirmed already" in late.text


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits, door: Doorkeeper) -> None:
    door.role = Role.ADMIN
    await lite_app.asubmit_by_name("pages", {"path": "a"})
    for each in HOSTILE[:12]:
        (job_id,) = await asyncio.to_thread(
            stage.line, engine_of(lite_app), 1, key=each, to=each[:90], name=each
        )
        await asyncio.to_thread(stage.end, engine_of(lite_app), job_id, how="cancel")
    is_inert(await visits_lite.see("/handovers"), "all")
