"""The dashboard inside of another application, beside the gateway, and as a process of its own."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import fastapi
import httpx
import pytest
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from fencerow import App
from fencerow.cli.main import root
from fencerow.core.errors import InvalidInput
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.beside import GatewayBeside
from fencerow.web.dashboard.roles import NOBODY, Role, Visitor
from fencerow.web.gateway.asgi import Gateway
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.visiting import Visits


def visiting(host: object, base: str) -> Visits:
    transport = httpx.ASGITransport(host)  # type: ignore[arg-type]
    return Visits(httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1"), base)


async def by_session(request: Request) -> Visitor:
    user = request.headers.get("x-user")
    return Visitor(user, Role.ACT) if user else NOBODY


@pytest.mark.parametrize("kind", ["starlette", "fastapi"])
async def test_a_host_says_who_asks_and_its_visitors_act_under_their_names(lite_app: App, kind: str) -> None:
    await lite_app.asubmit_by_name("pages", {"path": "a.pdf"})
    board = Dashboard(lite_app, authorize=by_session, read_only=False)
    if kind == "starlette":
        host: Starlette = Starlette(routes=[Mount("/ops", board)])
    else:
        host = fastapi.FastAPI()
        host.mount("/ops", board)
    visits = visiting(host, "/ops")
    nobody = await visits.client.get("/ops/")
    visits.client.headers["x-user"] = "mara"
    page = await visits.press("/queues/pause", back="/queues", on="/queues", queue="documents")
    (paused,) = await lite_app.client.apaused_queues()
    await board.aclose()

    assert (nobody.status_code, nobody.headers.get("location")) == (401, None)
    assert "Queue documents is paused." in page.text
    assert (paused.name, paused.paused_by) == ("documents", "mara")


async def test_beside_the_gateway_each_has_its_own_door(lite_app: App) -> None:
    """A token that lets its bearer call lets nobody act here while the dashboard only shows."""
    token = (await lite_app.client.tokens.acreate("mara", scopes=["operate"])).token
    both = GatewayBeside(Gateway(lite_app), Dashboard(lite_app))
    visits = visiting(both, "/dashboard")
    short = await visits.client.get("/dashboard")
    called = await visits.client.get("/v1/queues", headers={"authorization": f"Bearer {token}"})
    nobody = await visits.client.get("/dashboard/queues", headers={"authorization": f"Bearer {token}"})
    form = await visits.token("/login")
    entered = await visits.send("/login", form=form, token=token, to="/queues")
    page = await visits.see("/queues")
    pressed = await visits.send("/queues/pause", form=await visits.token("/queues"), queue="documents")
    both.leave()
    ready = await visits.client.get("/readyz")
    await both.aclose()

    assert (short.status_code, short.headers["location"]) == (308, "/dashboard/")
    assert (called.status_code, called.headers["content-type"]) == (200, "application/json")
    assert (nobody.status_code, nobody.headers["location"]) == (303, "/dashboard/login?to=%2Fqueues")
    assert (entered.status_code, entered.headers["location"]) == (303, "/dashboard/queues")
    assert "this dashboard only shows" in page.text
    assert pressed.status_code == 403
    assert ready.status_code == 503


async def test_the_command_shows_pages_until_it_is_told_to_stop(sqlite_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    words = ["dashboard", "--url", f"sqlite:///{sqlite_path}", "--bind", str(port)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fencerow.cli.main", *words, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        told = (await process.stderr.readline()).decode()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as http:
            login = await http.get("/login")
        process.terminate()
        rest = (await process.stderr.read()).decode()
        code = await process.wait()

    assert told == f"the dashboard is at http://127.0.0.1:{port}/, only to look\n"
    assert login.status_code == 200 and "API token" in login.text
    assert (code, "Traceback" in rest) == (0, False)


def test_serve_shows_nobody_more_than_its_dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    told = CliRunner().invoke(root, ["serve", "-A", "shop:app", "--act"])

    assert isinstance(told.exception, InvalidInput) and "--act" in told.exception.what
