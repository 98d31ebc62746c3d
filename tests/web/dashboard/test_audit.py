"""The audit log in the dashboard: who changed what, by which way, a page at a time."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from fencerow import App
from fencerow.client import Client
from fencerow.core.model.person import Person, Via
from fencerow.core.wing import witnessed
from fencerow.web.dashboard.screen import UNNAMED
from fencerow.web.dashboard.screens import audit
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Doorkeeper, Visits


def client_of(app: App, person: str) -> Client:
    """The verbs of somebody at a command line."""
    common = app.client
    return Client(
        witnessed(common.engine, Person(person, Via.COMMAND)), actor=person, ready=common.make_ready
    )


async def test_who_changed_what_is_found(app: App, visits: Visits) -> None:
    job = await app.asubmit_by_name("pages", {"path": "a"})
    await client_of(app, "ada").apause_queue("letters", reason="outage")
    await visits.press(f"/jobs/{job.id}/cancel", on=f"/jobs/{job.id}", reason="not wanted")
    whole = await visits.see("/audit")
    mara, queues, letters, none = [
        await visits.see(f"/audit?{query}")
        for query in ("person=mara", "kind=queue", "target=letters", "person=mara&kind=queue")
    ]

    assert "ada command queue letters paused reason: outage" in whole.text
    assert f"mara dashboard 127.0.0.1 job {job.id} cancelled" in whole.text
    assert f"/jobs/{job.id}" in {tag.get("href") for _, tag in whole.tags}
    assert str(job.id) in mara.text and "letters" not in mara.text
    assert "letters paused" in queues.text and "letters paused" in letters.text
    assert str(job.id) not in queues.text + letters.text
    assert "No entry matches" in none.text


async def test_a_page_leads_to_the_older_one(
    lite_app: App, visits_lite: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PAGE", 2)
    ada = client_of(lite_app, "ada")
    for name in ("alpha", "beta", "gamma"):
        await ada.apause_queue(name)
    newest = await visits_lite.see("/audit?person=ada")
    (older,) = [tag["href"] for _, tag in newest.tags if tag.get("rel") == "next"]
    rest = await visits_lite.see(older)
    await visits_lite.see("/audit?before=x", status=422)

    assert "gamma" in newest.text and "beta" in newest.text and "alpha" not in newest.text
    assert "person=ada" in older and "alpha" in rest.text and "beta" not in rest.text


@pytest.mark.parametrize(
    ("name", "told"), [("ma\x00ra", "ma\ufffdra"), ("ma\ud800", "ma\ufffd"), (" ", UNNAMED), ("", UNNAMED)]
)
async def test_whatever_name_a_host_gives_pages_show_and_entries_keep(
    app: App, visits: Visits, door: Doorkeeper, name: str, told: str
) -> None:
    await app.jobs["pages"].asubmit("a.pdf")
    door.name = name
    await visits.press("/queues/pause", back="/queues", on="/queues", queue="documents")
    (entry,) = await app.client.audit.aentries()

    assert entry.person == told
    assert told in (await visits.see("/audit")).text


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits) -> None:
    for each in HOSTILE[:12]:
        await client_of(lite_app, each).apause_queue("letters", reason=each)
        await lite_app.client.aresume_queue("letters")
        is_inert(await visits_lite.see(f"/audit?{urlencode({'person': each, 'target': each})}"), each)
    is_inert(await visits_lite.see("/audit"), "all")
