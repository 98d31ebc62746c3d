"""Maintenance: every gateway refuses all but health within a bounded time, and nothing else stops."""

from __future__ import annotations

import httpx
import pytest

from fencerow import App
from fencerow.core.errors import Unavailable
from fencerow.web.errors import UnderMaintenance
from fencerow.web.gateway import closing
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.closing import LOOK_S, Closing
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door, calling, ended


async def test_all_gateways_refuse_all_but_health_until_it_is_ended(
    app: App, url: str, http: httpx.AsyncClient, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = (await app.asubmit_by_name("pages", {"path": "a"})).id
    assert (await http.get("/v1/maintenance")).json()["on"] is False
    monkeypatch.setattr(closing, "LOOK_S", 0.0)
    async with App(url) as other, calling(Gateway(other, authorize=door)) as elsewhere:
        begun = await http.post("/v1/maintenance/on", json={"reason": "a move", "retry_after_s": 90})
        again = await elsewhere.post("/v1/maintenance/on", json={"reason": "another"})
        monkeypatch.setattr(closing, "LOOK_S", 60.0)
        for caller in (http, elsewhere):
            refused = await caller.get(f"/v1/jobs/{job}")
            assert (refused.status_code, refused.json()["code"]) == (503, "FR-875")
            assert refused.json()["detail"].startswith("the gateway is under maintenance")
            assert (refused.headers["retry-after"], refused.json()["repeat"]) == ("90", "yes")
            assert (await caller.post("/v1/jobs", json={"job": "pages"})).status_code == 503
            for path in ("/livez", "/readyz", "/openapi.json"):
                assert (await caller.get(path)).status_code == 200
        shown = (await elsewhere.get("/v1/maintenance")).json()
        await ended(app, job)  # what was accepted is done
        await app.asubmit_by_name("pages", {"path": "b"})  # and the library takes more
        monkeypatch.setattr(closing, "LOOK_S", 0.0)
        over = [(await http.post("/v1/maintenance/off", json={})).json() for _ in "12"]
        assert (await elsewhere.get(f"/v1/jobs/{job}")).json()["state"] == "succeeded"

    assert [each.json()["changed"] for each in (begun, again)] == [True, False]
    assert (shown["on"], shown["set_by"], shown["reason"], shown["retry_after_s"]) == (
        True, "tests", "a move", 90,
    )  # fmt: skip
    assert over == [{"on": False, "changed": True}, {"on": False, "changed": False}]


async def test_who_may_not_operate_everywhere_changes_nothing(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    for scopes, queues in (([Scope.READ], None), ([Scope.READ, Scope.OPERATE], {"letters"})):
        door.only(*scopes, queues=queues)
        for verb in ("on", "off"):
            refused = await http.post(f"/v1/maintenance/{verb}", json={})
            assert (refused.status_code, refused.json()["code"]) == (403, "FR-871")
    assert (await http.get("/v1/maintenance")).status_code == 403
    door.only(Scope.OPERATE)
    for body in ({"reason": ""}, {"retry_after_s": 0}, {"retry_after_s": 90_000}, {"until": "noon"}):
        assert (await http.post("/v1/maintenance/on", json=body)).status_code == 422, body
    assert await app.client.maintenance.aget() is None


async def test_a_gateway_looks_when_a_second_is_over_and_keeps_what_it_knew_where_it_cannot(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    known = Closing(lambda: app.client, clock=lambda: now_s)
    await known.check()
    await app.client.maintenance.abegin(retry_after_s=7)
    await known.check()  # what it knows is not a second old

    now_s = LOOK_S
    with pytest.raises(UnderMaintenance) as caught:
        await known.check()

    assert caught.value.retry_after_s == 7
    await app.client.maintenance.aend()

    async def broken(_steps: object) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(app.client, "arun", broken)
    now_s = 2 * LOOK_S
    with pytest.raises(UnderMaintenance):
        await known.check()
    monkeypatch.undo()
    now_s = 3 * LOOK_S
    await known.check()
    await known.aclose()
