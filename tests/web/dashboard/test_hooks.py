"""Webhooks that come in, in the dashboard: what came to each hook, counted by gateways and noted now and then."""

from __future__ import annotations

import httpx
import pytest

from fencerow import App
from fencerow.web import GitHub, InboundWebhook, receive_webhooks
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.tallies.counting import HookTallies
from fencerow.web.tallies.operations import HookCounts, hook_tallies, note_hooks
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Visits
from tests.web.inbound.senders import GITHUB, github

BODY = b'{"id": "evt_1"}'


async def pushed(webhook: InboundWebhook) -> None: ...


async def post(gateway: Gateway, secret: str = GITHUB, delivery: str = "d-1") -> int:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gateway), base_url="http://127.0.0.1") as http:
        headers = [("content-type", "application/json"), *github(BODY, secret, delivery=delivery)]
        return (await http.post("/v1/hooks/github", content=BODY, headers=headers)).status_code


async def posted(app: App, *secrets: str) -> list[int]:
    """What a gateway answers to one webhook after the other, which are signed so. It notes what it has counted."""
    gateway = Gateway(app)
    statuses = [await post(gateway, each) for each in secrets]
    await gateway.aclose()
    return statuses


async def test_what_came_to_a_hook_is_seen(app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_GITHUB", GITHUB)
    receive_webhooks(app, "github", GitHub("OF_GITHUB"), app.job(name="pushed")(pushed))
    before = await visits.see("/hooks")
    first = await posted(app, GITHUB, GITHUB, "wrong")
    wrong = await visits.see("/hooks?n=1")
    second = await posted(app, "wrong", GITHUB)
    after = await visits.see("/hooks?n=2")
    (tally,), _ = await app.engine.arun(hook_tallies(limit=10))

    assert (first, second) == ([202, 202, 400], [400, 202])
    assert "github" in before.text and "never" in before.text and "Problems" not in before.text
    assert "Hook github refuses what comes" in wrong.text and "What to do:" in wrong.text
    assert "refuses what comes" not in after.text, "the latest one was taken"
    assert (tally.received, tally.repeated, tally.refused) == (1, 2, 2)
    assert tally.refusal and "wrong" not in tally.refusal


async def test_counts_are_added_and_of_instants_the_latest_stays(app: App) -> None:
    await app.client.apaused_queues()  # an app makes its tables when it is first used
    first = HookCounts("a", 2, 5.0, refused=1, refused_s=1.0, refusal="late")
    await app.engine.arun(note_hooks([first, HookCounts("b", 1, 1.0)]))
    await app.engine.arun(note_hooks([HookCounts("a", 1, 60.0, 1, 2.0, 1, 30.0, "early")]))
    (a, b), now_us = await app.engine.arun(hook_tallies(limit=10))

    assert (a.received, a.repeated, a.refused, b.received) == (3, 1, 2, 1)
    assert a.refusal == "late" and b.refused_at_us is None
    assert a.received_at_us is not None and now_us - a.received_at_us < 55e6


async def test_a_note_that_fails_is_lost_and_nobody_hears_of_it(lite_app: App) -> None:
    lite_app.close()
    tallies = HookTallies(lambda: lite_app.client)
    tallies.took("github", repeated=False)
    await tallies.aclose()


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits) -> None:
    await lite_app.client.apaused_queues()
    counts = [HookCounts(each[:60], 1, 9.0, refused=1, refused_s=1.0, refusal=each) for each in HOSTILE]
    await lite_app.engine.arun(note_hooks(counts))
    is_inert(await visits_lite.see("/hooks"), "all")
