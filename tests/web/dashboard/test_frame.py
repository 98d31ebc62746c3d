"""What every page and press of the dashboard keeps to, whatever it shows."""

from __future__ import annotations

import asyncio
import hashlib
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from fencerow import App, Client
from fencerow.config import Config
from fencerow.core.errors import Unavailable
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.roles import NOBODY, Role, Visitor
from tests.web.dashboard.visiting import Doorkeeper, Reader, Visits

HERE = "http://127.0.0.1"


def visiting(board: object, base: str = "") -> Visits:
    client = httpx.AsyncClient(transport=httpx.ASGITransport(board), base_url=HERE)  # type: ignore[arg-type]
    return Visits(client, base)


async def test_every_answer_forbids_what_is_not_ours(lite_app: App) -> None:
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.READ)))
    style = next(
        found["href"]
        for tag, found in (await visits.see("/")).tags
        if tag == "link" and found["rel"] == "stylesheet"
    )
    answers = [await visits.client.get(path) for path in ("/", "/nowhere", style, "/static/0/style.css")]
    await board.aclose()

    assert [each.status_code for each in answers] == [200, 404, 200, 404]
    for each in answers:
        assert each.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
        )
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["referrer-policy"] == "no-referrer"
    assert answers[0].headers["cache-control"] == "no-store"
    assert "immutable" in answers[2].headers["cache-control"]


async def test_the_least_role_of_every_route_is_demanded(lite_app: App) -> None:
    door = Doorkeeper(Role.NONE)
    board = Dashboard(lite_app, authorize=door, read_only=False)
    visits = visiting(board)
    roles = {(each.method, each.path): each.role for each in board.entries}
    assert all(role >= Role.ACT for (method, _), role in roles.items() if method == "POST")

    for (method, path), wanted in roles.items():
        for role in Role:
            door.role = role
            answer = await visits.client.request(method, path.replace("{", "").replace("}", ""))
            refused = (
                answer.status_code in (401, 403) and "your role is" in answer.text
            ) or answer.status_code == 401
            assert refused is (role < wanted), (method, path, role, answer.status_code)
    await board.aclose()


async def test_no_press_of_any_kind_is_taken_without_its_pages_token_or_from_another_site(
    lite_app: App,
) -> None:
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.ADMIN), read_only=False))
    token = await visits.token("/jobs")
    assert token
    for path in [
        each.path.replace("{", "").replace("}", "") for each in board.entries if each.method == "POST"
    ]:
        answers = [
            await visits.send(path, back="/"),
            await visits.send(path, form=token, origin="https://evil.example"),
        ]
        assert [(each.status_code, "FR-920" in each.text) for each in answers] == [(403, True)] * 2, path
    await board.aclose()


async def test_by_default_nobody_does_more_than_look(lite_app: App) -> None:
    board = Dashboard(lite_app, authorize=Doorkeeper(Role.ADMIN))
    visits = visiting(board)
    posts = [each.path for each in board.entries if each.method == "POST"]
    token = await visits.token()
    answers = [await visits.send(path.replace("{", "").replace("}", ""), form=token) for path in posts]
    await board.aclose()

    assert {each.status_code for each in answers} <= {403}
    assert all("only shows" in each.text for each in answers)


async def test_a_name_that_is_not_ours_is_refused(lite_app: App) -> None:
    """A foreign page whose name leads to our address: DNS rebinding."""
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.ADMIN)))
    rebound = await visits.client.get("/", headers={"host": "evil.example"})
    ours = await visits.client.get("/", headers={"host": "localhost:9000"})
    await board.aclose()

    assert (rebound.status_code, ours.status_code) == (421, 200)
    assert "Fencerow" in rebound.text and "evil.example" in Reader(rebound.text).text


async def test_a_database_that_is_gone_is_a_page_that_says_so(
    lite_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_operation: object) -> None:
        raise Unavailable("no connection to db.internal as secret_role", "refused", "start it")

    monkeypatch.setattr(lite_app.engine, "arun", gone)
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.READ)))
    answer = await visits.client.get("/")
    await board.aclose()

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "the database cannot be used now" in answer.text
    assert not {"db.internal", "secret_role", "Traceback"} & set(Reader(answer.text).text.split())


async def test_a_database_that_is_slow_is_given_up(lite_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(_operation: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(lite_app.engine, "arun", slow)
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.READ), look_s=0.05))
    answer = await visits.client.get("/")
    await board.aclose()

    assert answer.status_code == 503 and "FR-874" in answer.text


async def test_a_press_that_takes_too_long_is_told_as_that(
    migrated_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object, **__: object) -> bool:
        await asyncio.Event().wait()
        return True

    config = Config(url=f"sqlite:///{migrated_path}", web_request_s=0.1)
    async with App(config=config) as app:
        await app.client.apause_queue("other")
        monkeypatch.setattr(Client, "apause_queue", never)
        visits = visiting(board := Dashboard(app, authorize=Doorkeeper(Role.ACT), read_only=False))
        page = await visits.press("/queues/pause", back="/queues", on="/queues", queue="mail")
        await board.aclose()

    assert "it was not done within 0.1 s" in page.text and "look before you press again" in page.text


@pytest.mark.parametrize("at", ["//[", "http://[", "/nowhere", "jobs", ""])
async def test_what_is_no_address_of_a_live_page_is_not_found(lite_app: App, at: str) -> None:
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.READ)))
    answer = await visits.client.get("/live", params={"at": at})
    await board.aclose()

    assert answer.status_code == 404


async def test_a_fault_of_a_view_tells_nothing(lite_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_operation: object) -> None:
        raise RuntimeError("s3cret")

    monkeypatch.setattr(lite_app.engine, "arun", broken)
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.READ)))
    answer = await visits.client.get("/")
    await board.aclose()

    assert answer.status_code == 500
    assert "s3cret" not in answer.text and "Traceback" not in answer.text


@pytest.mark.parametrize("base", ["", "/ops/jobs"])
async def test_all_links_begin_where_it_is_mounted(lite_app: App, base: str) -> None:
    board = Dashboard(lite_app, authorize=Doorkeeper(Role.ACT), read_only=False)
    host = Starlette(routes=[Mount(base, board)]) if base else board
    visits = visiting(host, base)
    page = await visits.see("/")
    await board.aclose()

    places = [found[name] for _, found in page.tags for name in ("href", "action", "src") if name in found]
    assert len(places) > 8
    assert all(each.startswith((f"{base}/", "#")) for each in places)


def test_what_is_vendored_is_as_it_came() -> None:
    folder = files("fencerow.web.dashboard") / "static" / "vendor"
    lines = (folder / "SHA256SUMS").read_text("utf-8").splitlines()
    told = {name: digest for digest, name in (line.split() for line in lines)}
    found = {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in folder.iterdir()
        if each.name != "SHA256SUMS"
    }

    assert found == told
    assert {"htmx-LICENSE.txt", "htmx-ext-sse-LICENSE.txt", "uPlot-LICENSE.txt"} <= found.keys()


async def test_a_host_that_lets_nobody_in_has_no_login(lite_app: App) -> None:
    async def nobody(_request: object) -> Visitor:
        return NOBODY

    visits = visiting(board := Dashboard(lite_app, authorize=nobody))
    answers = [await visits.client.get(path) for path in ("/", "/login")]
    await board.aclose()

    assert [each.status_code for each in answers] == [401, 404]


async def test_probes_are_answered_as_by_the_gateway(lite_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    visits = visiting(board := Dashboard(lite_app))

    async def probed() -> list[int]:
        return [(await visits.client.get(path)).status_code for path in ("/livez", "/readyz")]

    well = await probed()
    with monkeypatch.context() as away:
        away.setattr(lite_app.engine, "arun", lambda _operation: _refused())
        without = await probed()
    board.leave()
    leaving = await probed()
    await board.aclose()

    assert (well, without, leaving) == ([200, 200], [200, 503], [200, 503])


async def _refused() -> None:
    raise Unavailable("no connection", "the server is away")
