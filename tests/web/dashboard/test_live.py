"""Pages that are kept live: one look for all who have the same page open."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import Any

import pytest

from fencerow import App
from fencerow.core.errors import Busy
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.cost import Cost, LookingClient
from fencerow.web.dashboard.looks import ROUND_STATEMENTS, Looks, ScreenPlace
from fencerow.web.dashboard.problems import Problems
from fencerow.web.dashboard.redacting import Redactor
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Look, Screen
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.visiting import Doorkeeper


class Counted:
    """A screen that counts how often it is looked at."""

    def __init__(self, statements: int = 1) -> None:
        self.looks: list[str] = []
        self.statements = statements

    async def view(self, look: Look) -> dict[str, Any]:
        self.looks.append(look.query.get("n", ""))
        look.cost.statements += self.statements
        return {"n": len(self.looks)}

    def place(self, n: str = "") -> ScreenPlace:
        return ScreenPlace(Screen("counted", "/counted", "Counted", self.view), (), (("n", n),) if n else ())


def looks_of(app: App, live_s: float) -> Looks:
    def make(place: ScreenPlace, cost: Cost) -> Look:
        query = MappingProxyType(dict(place.query))
        return Look(app, MappingProxyType({}), query, cost, Problems(list), Redactor())

    return Looks(make, live_s=live_s)


async def test_all_who_come_at_once_share_one_look(lite_app: App) -> None:
    screen, looks = Counted(), looks_of(lite_app, 60.0)
    found = await asyncio.gather(*(looks.seen(screen.place()) for _ in range(50)))
    looks.forget()  # somebody pressed a button
    after = await looks.seen(screen.place())

    assert {each.found["n"] for each in found} == {1}
    assert after.found["n"] == 2


async def test_all_who_follow_a_page_share_one_look_a_round(lite_app: App) -> None:
    screen, looks = Counted(), looks_of(lite_app, 0.001)

    async def follow() -> list[int]:
        with looks.following(screen.place()) as followed:
            seen = [await asyncio.shield(followed.next) for _ in range(3)]
            return [each.found["n"] for each in seen if each is not None]

    async with asyncio.timeout(PATIENCE_S):
        found = await asyncio.gather(*(follow() for _ in range(50)))
    await looks.aclose()

    assert set(map(tuple, found)) == {(1, 2, 3)}


async def test_a_round_keeps_to_its_budget_and_reaches_all_in_turn(lite_app: App) -> None:
    screen, looks = Counted(statements=6), looks_of(lite_app, 0.001)
    in_a_round = ROUND_STATEMENTS // 6
    places = [screen.place(str(n)) for n in range(3 * in_a_round)]

    async def follow(place: ScreenPlace) -> None:
        with looks.following(place) as followed:
            await asyncio.shield(followed.next)

    async with asyncio.timeout(PATIENCE_S):
        tasks = [asyncio.ensure_future(follow(each)) for each in places]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = len(screen.looks)
        await asyncio.gather(*tasks)
    await looks.aclose()

    assert first == in_a_round
    assert sorted(screen.looks[: len(places)], key=int) == [str(n) for n in range(len(places))]


async def test_nobody_follows_so_nobody_asks(lite_app: App) -> None:
    looks = looks_of(lite_app, 0.001)
    with looks.following(Counted().place()) as followed:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.shield(followed.next)
    async with asyncio.timeout(PATIENCE_S):
        await looks._poller  # type: ignore[misc] # it ends by itself


@pytest.mark.parametrize("cost", [Cost(statements_max=1), Cost(rows_max=1)], ids=["statements", "rows"])
async def test_a_view_that_would_cost_too_much_is_refused(lite_app: App, cost: Cost) -> None:
    for to in ("ada", "bob"):
        await lite_app.asubmit_by_name("mail", {"to": to})
    client = LookingClient(lite_app.client, cost)

    with pytest.raises(Busy, match="more than 1"):
        for _ in range(2):
            await client.alist_jobs()


async def test_an_open_page_is_sent_again_and_ends_with_the_process(lite_app: App) -> None:
    board = Dashboard(lite_app, authorize=Doorkeeper(Role.READ), live_s=0.01)
    came: list[bytes] = []
    enough = asyncio.Event()

    async def send(message: Any) -> None:
        came.append(message.get("body", b""))
        if b"event: view" in came[-1]:
            enough.set()

    async def receive() -> Any:
        await asyncio.Event().wait()

    scope = {
        "type": "http", "method": "GET", "path": "/live", "root_path": "", "scheme": "http",
        "query_string": b"at=%2F%3Fa%3D1", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80), "http_version": "1.1",
    }  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        serving = asyncio.ensure_future(board(scope, receive, send))
        await enough.wait()
        board.leave()
        await serving
    await board.aclose()

    page = b"".join(came).decode()
    assert "data: " in page and "Problems and what to do" in page
    assert "<html" not in page
