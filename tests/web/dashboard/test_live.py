"""Pages that are kept live: one look for all who have the same page open."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import pytest

from fencerow import App
from fencerow.core.errors import Busy
from fencerow.core.finding import Finding
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.beat import SLOW_S, Beat
from fencerow.web.dashboard.cost import Cost, LookingClient
from fencerow.web.dashboard.guard import form_token
from fencerow.web.dashboard.looks import ROUND_STATEMENTS, Looks, ScreenPlace
from fencerow.web.dashboard.pages import Pages, Visit
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


async def test_a_clock_that_is_set_back_keeps_no_look(lite_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, looks = Counted(), looks_of(lite_app, 60.0)
    examined: list[float] = []

    def examine() -> list[Finding]:
        examined.append(time.time())
        return []

    problems, told = Problems(examine), []
    for now_s in (9_000.0, 9_000.0, 5_400.0):
        monkeypatch.setattr(time, "time", lambda now_s=now_s: now_s)
        told.append((await looks.seen(screen.place())).found["n"])
        await problems.found()
        await problems.aclose()

    assert (told, examined) == ([1, 1, 2], [9_000.0, 5_400.0])


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


async def test_what_screens_of_a_round_ask_alike_is_asked_once(lite_app: App) -> None:
    async def view(look: Look) -> dict[str, Any]:
        return {"jobs": await look.client.alist_jobs(limit=int(look.query["limit"]))}

    screen, looks = Screen("listed", "/listed", "Listed", view), looks_of(lite_app, 0.001)
    places = [
        ScreenPlace(screen, (), (("at", at), ("limit", n))) for at, n in (("a", "5"), ("b", "5"), ("c", "6"))
    ]
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.ExitStack() as following:
            followed = [following.enter_context(looks.following(each)) for each in places]
            seen = await asyncio.gather(*(asyncio.shield(each.next) for each in followed))
    await looks.aclose()

    assert [each.cost.statements for each in seen if each is not None] == [1, 0, 1]


@pytest.mark.parametrize(("took_s", "every_s"), [(0.01, 2.0), (0.4, 4.0), (60.0, SLOW_S)])
def test_the_longer_a_look_takes_the_seldomer_it_is_made(took_s: float, every_s: float) -> None:
    beat = Beat(2.0)
    for _ in range(30):
        beat.took(took_s)

    assert beat.every_s == pytest.approx(every_s)
    assert beat.slowed_s == (None if every_s == 2.0 else pytest.approx(every_s))


async def test_an_open_page_is_sent_again_and_ends_with_the_process(lite_app: App) -> None:
    board = Dashboard(lite_app, authorize=Doorkeeper(Role.READ), live_s=0.01)
    (page,) = await opened_until_sent(board, "/", "seed")
    await board.aclose()

    assert "data: " in page and "Problems and what to do" in page
    assert "<html" not in page


async def test_each_who_has_a_page_open_gets_forms_of_their_own(lite_app: App) -> None:
    await lite_app.asubmit_by_name("mail", {"to": "ada"}, queue="mail")
    board = Dashboard(lite_app, authorize=Doorkeeper(Role.ACT), read_only=False, live_s=0.01)
    made = 0
    plain = Pages.live

    def counted(pages: Pages, name: str, visit: Visit, found: Any) -> str:
        nonlocal made
        made += 1
        return plain(pages, name, visit, found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pages, "live", counted)
        ada, bob = await opened_until_sent(board, "/queues", "ada", "bob")
    await board.aclose()

    assert form_token("ada") in ada and form_token("bob") not in ada
    assert form_token("bob") in bob and form_token("ada") not in bob
    assert made == max(each.count("event: view") for each in (ada, bob))  # once for both


async def opened_until_sent(board: Dashboard, at: str, *seeds: str) -> list[str]:
    """What browsers with these cookies have got when the page came to each; then the process leaves."""
    came: dict[str, list[bytes]] = {each: [] for each in seeds}
    left, enough = set(seeds), asyncio.Event()

    async def send(seed: str, message: Any) -> None:
        came[seed].append(message.get("body", b""))
        if b"event: view" in came[seed][-1]:
            left.discard(seed)
            if not left:
                enough.set()

    async def receive() -> Any:
        await asyncio.Event().wait()

    def scope(seed: str) -> Any:
        return {
            "type": "http", "method": "GET", "path": "/live", "root_path": "", "scheme": "http", "http_version": "1.1",
            "query_string": urlencode({"at": at}).encode(), "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
            "headers": [(b"host", b"localhost"), (b"cookie", f"fencerow_form={seed}".encode())],
        }  # fmt: skip

    async with asyncio.timeout(PATIENCE_S):
        serving = [asyncio.ensure_future(board(scope(each), receive, partial(send, each))) for each in seeds]
        await enough.wait()
        board.leave()
        await asyncio.gather(*serving)
    return [b"".join(came[each]).decode() for each in seeds]
