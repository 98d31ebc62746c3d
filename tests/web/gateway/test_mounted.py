"""The gateway inside of another application: links begin where it is mounted, and the host may say who asks."""

from __future__ import annotations

import fastapi
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from fencerow import App
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.tokens.scope import Grant
from tests.web.gateway.conftest import ALL, Door, calling


@pytest.mark.parametrize("kind", ["starlette", "fastapi"])
async def test_links_begin_where_it_is_mounted(lite_app: App, door: Door, kind: str) -> None:
    gateway = Gateway(lite_app, authorize=door)
    if kind == "starlette":
        host: Starlette = Starlette(routes=[Mount("/gate", gateway)])
    else:
        host = fastapi.FastAPI()
        host.mount("/gate", gateway)
    async with (
        lite_app,
        calling(gateway, host, "/gate") as http,
    ):
        answer = await http.post("/gate/v1/jobs", json={"job": "pages", "args": {"path": "a.pdf"}})
        found = await http.get(answer.headers["location"])

    assert answer.headers["location"].startswith("/gate/v1/jobs/")
    assert (found.status_code, found.json()["state"]) == (200, "queued")


async def test_the_host_may_say_who_asks(lite_app: App) -> None:
    async def by_session(request: Request) -> Grant | None:
        return ALL if request.headers.get("cookie") == "session=ada" else None

    gateway = Gateway(lite_app, authorize=by_session)
    async with (
        lite_app,
        calling(gateway) as http,
    ):
        nobody = await http.get("/v1/jobs/x")
        ada = await http.get("/v1/jobs/x", headers={"cookie": "session=ada"})

    assert (nobody.status_code, nobody.json()["code"]) == (401, "FR-870")
    assert ada.status_code == 422  # no id, but asked by somebody
