"""Webhooks in the dashboard: endpoints, deliveries, attempts, and what a person can do. Never a secret."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from fencerow import App
from fencerow.web.dashboard.screens import webhooks
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Visits
from tests.web.webhooks.stage import Receiver, app_at, end, hooks_of, receiving

SECRET = "whsec_" + "QUJD" * 12


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def app(url: str, receiver: Receiver) -> Iterator[App]:
    with app_at(url, receiver.url) as made:
        yield made


async def test_what_failed_is_seen_and_redelivered(app: App, receiver: Receiver, visits: Visits) -> None:
    receiver.answer = lambda _got: (500, {})
    url = receiver.url + "?key=hush"
    await hooks_of(app).aadd("shop", url, secret=SECRET, attempts_max=1)
    (job_id,) = await asyncio.to_thread(end, app, "ada")
    (failed,) = await hooks_of(app).adeliveries()
    path = f"/webhooks/delivery?endpoint=shop&event={failed.event_id}"
    here = {"back": path, "on": "/webhooks", "endpoint": "shop", "webhook_id": failed.webhook_id}
    listed = await visits.see("/webhooks?state=failed&endpoint=shop")
    nothing = await visits.see("/webhooks?state=delivered")
    odd = await visits.see("/webhooks?state=lost")
    before = await visits.see(path)
    done = await visits.press("/webhooks/redeliver", **here)
    again = await visits.press("/webhooks/redeliver", **here)
    await visits.see("/webhooks/delivery?endpoint=shop&event=1000000", status=422)
    (audited, *_) = await app.client.audit.aentries(person="mara")
    around = await visits.see(f"/jobs/{job_id}/around")

    assert "shop failed" in listed.text and job_id[:13] in listed.text and "500" in listed.text
    assert "hush" not in listed.text and SECRET[6:] not in listed.text + before.text
    assert "No delivery matches" in nothing.text and "pending, delivered, failed are known" in odd.text
    assert "shop pending" in around.text
    assert "1 500" in before.text and failed.webhook_id in before.text
    assert "It is sent to shop once more" in done.text and "pending" in done.text
    assert "Nothing was sent" in again.text
    assert (audited.kind, audited.via) == ("webhook", "dashboard")


async def test_an_endpoint_is_disabled_and_enabled(app: App, receiver: Receiver, visits: Visits) -> None:
    await hooks_of(app).aadd("shop", receiver.url)
    here = {"back": "/webhooks", "on": "/webhooks", "endpoint": "shop"}
    off = await visits.press("/webhooks/disable", reason="they move", **here)
    late = await visits.press("/webhooks/disable", **here)
    was = await hooks_of(app).aget("shop")
    on = await visits.press("/webhooks/enable", **here)
    unknown = await visits.press("/webhooks/enable", **(here | {"endpoint": "shup"}))

    assert "told nothing more" in off.text and "disabled “they move”" in off.text
    assert "was not enabled" in late.text and (was.changed_by, was.reason) == ("mara", "they move")
    assert "told of ends again" in on.text and "there is no webhook endpoint" in unknown.text
    assert (await hooks_of(app).aget("shop")).state == "enabled"


async def test_deliveries_come_a_page_at_a_time(
    app: App, receiver: Receiver, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "PAGE", 1)
    for name in ("north", "south"):
        await hooks_of(app).aadd(name, receiver.url)
    await asyncio.to_thread(end, app, "ada")
    path, found = "/webhooks", []
    for _ in range(2):
        page = await visits.see(path)
        found.append([word for word in ("north delivered", "south delivered") if word in page.text])
        path = next((tag["href"] for _, tag in page.tags if tag.get("rel") == "next"), "")

    assert found == [["north delivered"], ["south delivered"]] and path == ""


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits) -> None:
    for each in HOSTILE[:12]:
        await hooks_of(lite_app).aadd(each[:100], "https://93.184.216.34/hooks", tags=[each])
        await hooks_of(lite_app).adisable(each[:100], reason=each)
    is_inert(await visits_lite.see("/webhooks"), "all")
    for each in HOSTILE[:3]:
        is_inert(await visits_lite.see(f"/webhooks?{urlencode({'endpoint': each, 'job': each})}"), each)
