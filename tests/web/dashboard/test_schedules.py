"""The screens of schedules, and what can be done there."""

from __future__ import annotations

from urllib.parse import urlencode

from fencerow import App
from tests.web.dashboard.hostile import HOSTILE
from tests.web.dashboard.visiting import Visits


def one(name: str, entity: str = "") -> str:
    return "/schedules/one?" + urlencode({"name": name, **({"entity": entity} if entity else {})})


async def test_a_schedule_is_paused_resumed_run_and_removed_by_the_visitor(app: App, visits: Visits) -> None:
    work = app.jobs["pages"].call("a")
    await app.schedules.aput("nightly", work, cron="0 3 * * *", tz="Europe/Berlin")
    here = {"back": one("nightly"), "on": "/schedules", "name": "nightly", "entity": ""}
    listed = await visits.see("/schedules")
    paused = await visits.press("/schedules/pause", reason="outage", **here)
    known = await app.schedules.aget("nightly")
    ran = await visits.press("/schedules/run", **here)
    again = await visits.press("/schedules/run", **here)
    resumed = await visits.press("/schedules/resume", **here)
    page = await visits.see(one("nightly"))
    removed = await visits.press("/schedules/remove", **here)

    assert "nightly At 03:00" in listed.text and "in Europe/Berlin" in listed.text
    assert (known.paused_by, known.pause_reason) == ("mara", "outage")
    assert (
        "by mara : “outage”" in paused.text.replace("mara:", "mara :")
        and "none of them is made" in paused.text
    )
    assert "has submitted 1 job" in ran.text and "an earlier one has not ended" in again.text
    assert "fires again at its next time" in resumed.text
    assert page.text.count("03:00 Europe/Berlin") == 10 and "queued mara" in page.text
    assert "is removed" in removed.text and await app.schedules.alisted() == []


async def test_entities_are_shown_and_paused_one_by_one(lite_app: App, visits_lite: Visits) -> None:
    names = ["north", HOSTILE[0]]
    lite_app.schedule(lite_app.jobs["pages"], "regions", entities=lambda: names, interval_s=60)
    await lite_app.schedules.areconcile()
    await lite_app.schedules.arefresh("regions")
    here = {"back": one("regions"), "on": "/schedules", "name": "regions"}
    page = await visits_lite.press("/schedules/pause", entity=HOSTILE[0], **here)
    entity = await visits_lite.see(one("regions", HOSTILE[0]))
    refused = await visits_lite.press("/schedules/remove", **here)
    gone = await visits_lite.see(one("regionz"), status=404)

    assert "1 of 2 paused" in page.text and "each at its own times" in page.text
    assert "paused" in entity.text and HOSTILE[0] in entity.text
    assert "is declared in code" in refused.text, refused.text
    assert "did you mean regions" in gone.text
