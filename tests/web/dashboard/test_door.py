"""Who is let in, and that no other site can press a button."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx
import pytest

from fencerow import App
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.roles import Role
from tests.web.dashboard.visiting import Doorkeeper, Reader, Visits


def visiting(board: Dashboard, scheme: str = "http") -> Visits:
    client = httpx.AsyncClient(transport=httpx.ASGITransport(board), base_url=f"{scheme}://127.0.0.1")
    return Visits(client)


async def logged_in(visits: Visits, token: str, to: str = "/") -> httpx.Response:
    form = await visits.token("/login")
    return await visits.send(
        "/login", form=form, token=token, to=to, origin=str(visits.client.base_url).rstrip("/")
    )


async def test_a_token_lets_its_bearer_in_until_they_leave(app: App) -> None:
    made = await app.client.tokens.acreate("mara", scopes=["operate"])
    visits = visiting(board := Dashboard(app))
    nobody = await visits.client.get("/?range=1h")
    entered = await logged_in(visits, made.token, to="/?range=1h")
    page = await visits.see("/")
    left = await visits.send("/logout", form=await visits.token())
    after = await visits.client.get("/")
    await board.aclose()

    assert (nobody.status_code, nobody.headers["location"]) == (303, "/login?to=%2F%3Frange%3D1h")
    assert (entered.status_code, entered.headers["location"]) == (303, "/?range=1h")
    assert "mara" in page.text and "this dashboard only shows" in page.text
    assert (left.status_code, after.headers["location"]) == (303, "/login")


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_cookies_are_bound_to_the_host_where_there_is_tls(lite_app: App, scheme: str) -> None:
    made = await lite_app.client.tokens.acreate("mara", scopes=["read"])
    visits = visiting(board := Dashboard(lite_app), scheme)
    cookies = (await logged_in(visits, made.token)).headers.get_list("set-cookie")
    await board.aclose()

    (session,) = [each for each in cookies if "session=" in each]
    assert "HttpOnly" in session and "SameSite=strict" in session and "Path=/" in session
    assert session.startswith("__Host-fencerow_session=") is (scheme == "https")
    assert ("Secure" in session) is (scheme == "https")


async def test_what_is_no_good_token_lets_nobody_in(lite_app: App) -> None:
    verbs = lite_app.client.tokens
    submits = await verbs.acreate("submits", scopes=["submit"])
    some = await verbs.acreate("some", scopes=["operate"], queues=["letters"])
    gone = await verbs.acreate("gone", scopes=["admin"])
    await verbs.arevoke(gone.record.id)
    visits = visiting(board := Dashboard(lite_app))
    answers = [await logged_in(visits, secret) for secret in ("", "x", submits.token, some.token, gone.token)]
    away = await logged_in(visits, (await verbs.acreate("read", scopes=["read"])).token, to="//evil.example")
    await board.aclose()

    assert [each.status_code for each in answers] == [401, 401, 403, 403, 401]
    assert all("session=" not in str(each.headers.get_list("set-cookie")) for each in answers)
    assert away.headers["location"] == "/"


FOREIGN: Mapping[str, dict[str, str]] = {
    "another site, by Origin": {"origin": "https://evil.example"},
    "another site, by Sec-Fetch-Site": {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1"},
    "a sandbox": {"origin": "null", "sec-fetch-site": "cross-site"},
    "a sandbox in an old browser": {"origin": "null"},
    "another port": {"origin": "http://127.0.0.1:81"},
    "nothing told": {},
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
async def test_a_form_of_another_site_changes_nothing(lite_app: App, headers: dict[str, str]) -> None:
    """Even with the cookies, and a token of a page of ours."""
    visits = visiting(board := Dashboard(lite_app))
    secret = (await lite_app.client.tokens.acreate("mara", scopes=["read"])).token
    form = await visits.token("/login")
    answer = await visits.client.post("/login", data={"form": form, "token": secret}, headers=headers)
    await board.aclose()

    assert (answer.status_code, "FR-920" in answer.text) == (403, True)
    assert "session" not in str(answer.headers.get_list("set-cookie"))


async def test_a_browser_that_sends_no_referrer_sends_null_and_says_that_the_site_is_ours(
    lite_app: App,
) -> None:
    """So does Chromium, because our pages forbid a referrer."""
    visits = visiting(board := Dashboard(lite_app))
    secret = (await lite_app.client.tokens.acreate("mara", scopes=["read"])).token
    form = await visits.token("/login")
    headers = {"origin": "null", "sec-fetch-site": "same-origin"}
    answer = await visits.client.post("/login", data={"form": form, "token": secret}, headers=headers)
    await board.aclose()

    assert answer.status_code == 303


async def test_a_form_without_the_token_of_its_page_changes_nothing(lite_app: App) -> None:
    visits = visiting(board := Dashboard(lite_app))
    other = visiting(board)
    theirs = await other.token("/login")
    await visits.token("/login")
    answers = [
        await visits.send("/login", token="x"),
        await visits.send("/login", token="x", form=theirs),
        await visiting(board).send("/login", token="x", form=theirs),
    ]
    await board.aclose()

    assert [each.status_code for each in answers] == [403] * 3


async def test_what_is_no_form_of_ours_is_refused(lite_app: App) -> None:
    visits = visiting(board := Dashboard(lite_app))
    headers = {"origin": "http://127.0.0.1", "content-type": "application/x-www-form-urlencoded"}
    bodies = [b"a=1&a=2", b"a=%ff", b"a=%00", b"a=" + b"b" * 70_000]
    answers = [await visits.client.post("/login", content=body, headers=headers) for body in bodies]
    json = await visits.client.post("/login", json={}, headers={"origin": "http://127.0.0.1"})
    await board.aclose()

    assert [each.status_code for each in [*answers, json]] == [400, 400, 400, 413, 400]


async def test_the_page_of_an_error_is_inert(lite_app: App) -> None:
    visits = visiting(board := Dashboard(lite_app, authorize=Doorkeeper(Role.READ, "<script>x</script>")))
    answer = await visits.client.get("/%3Cscript%3Ealert(1)%3C/script%3E?a=<svg onload=x>")
    page = await visits.see("/")
    await board.aclose()

    visits.read(answer)
    assert not re.search(r"<script>|<svg onload", answer.text)
    assert "<script>x</script>" in Reader("".join(page.texts)).text or "<script>x</script>" in page.text
