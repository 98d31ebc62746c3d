"""The screen of exclusive keys, limits and mutexes, and what can be done there."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.guards.mutex import mutexes
from fencerow.guards.mutex.mutexes import MutexTaker
from fencerow.limits import Limit, Rate
from fencerow.turns import handing
from fencerow.web.dashboard.cost import Cost
from fencerow.web.dashboard.roles import Role
from tests.web.dashboard.hostile import HOSTILE
from tests.web.dashboard.visiting import Doorkeeper, Visits

KEY = HOSTILE[0]


async def test_who_has_turns_and_who_waits_is_shown(app: App, visits: Visits) -> None:
    for path in ("first", "second"):
        await app.jobs["pages"].using(exclusive=KEY).asubmit(path)
    await app.engine.arun(handing.hand_over())  # as workers do
    turns = await visits.see("/turns")
    page = await visits.see("/turns/key?" + urlencode({"key": KEY}))
    free = await visits.see("/turns/key?key=nobody")

    assert KEY in turns.text and "No limit is defined" in turns.text and "No mutex is held" in turns.text
    assert "to be claimed" in page.text and page.text.count("pages documents") == 2
    assert "Nobody has one" in free.text and "Nobody waits" in free.text


async def test_a_limit_is_changed_by_the_visitor_and_keeps_the_rest(app: App, visits: Visits) -> None:
    await app.client.limits.adefine(
        Limit("github", at_once=4, rate=Rate(100, 60, burst=5), hours="09:00-17:00 UTC")
    )
    page = "/turns/limit?name=github"
    here = {"back": page, "on": "/turns", "name": "github"}
    changed = await visits.press("/turns/limit", at_once="2", rate="100/min", reason="they asked", **here)
    known = await app.client.limits.aget("github")
    same = await visits.press("/turns/limit", at_once="2", rate="100/min", **here)
    wrong = await visits.press("/turns/limit", at_once="many", rate="100/min", **here)
    odd = await visits.press("/turns/limit", at_once="2", rate="soon", **here)
    faster = await visits.press("/turns/limit", at_once="", rate="5/s", **here)

    assert (known.limit.at_once, known.set_by, known.reason) == (2, "mara", "they asked")
    assert known.limit.rate == Rate(100, 60, burst=5) and known.limit.hours
    assert "2 at once; 100/min, burst 5" in changed.text and "by mara: “they asked”" in changed.text
    assert "was so already" in same.text and "a whole number or nothing is expected" in wrong.text
    assert "cannot be read" in odd.text and "is 5/s, burst 5" in faster.text


async def test_a_mutex_is_freed_only_by_an_administrator(app: App, visits: Visits, door: Doorkeeper) -> None:
    await app.client.limits.adefine(Limit("github", at_once=4))
    taker = MutexTaker("sp:1", new_id(), 30.0, "h1", 7, KEY)
    assert await app.engine.arun(mutexes.make(taker)) == 1
    here = {"back": "/turns", "on": "/turns", "key": "sp:1", "token": "1"}
    shown = await visits.see("/turns")
    refused = await visits.send("/turns/free", form=await visits.token("/turns"), key="sp:1", token="1")
    door.role = Role.ADMIN
    freed = await visits.press("/turns/free", reason="it hangs", **here)
    known = await app.client.mutexes.aget("sp:1")
    late = await visits.press("/turns/free", **here)

    assert "sp:1" in shown.text and KEY in shown.text and refused.status_code == 403
    assert "is free" in freed.text and "Nobody holds the mutex sp:1" in late.text
    assert (known.freed_by, known.freed_reason) == ("mara", "it hangs")


async def test_the_other_tables_stay_where_there_are_too_many_limits(
    lite_app: App, visits_lite: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lite_app.jobs["pages"].using(exclusive=KEY).asubmit("a")
    for number in range(12):
        await lite_app.client.limits.adefine(Limit(f"limit{number}", at_once=1))
    monkeypatch.setattr("fencerow.web.dashboard.looks.Cost", lambda most, _, **more: Cost(most, 10, **more))
    turns = await visits_lite.see("/turns")

    assert "more limits than a page may read" in turns.text and KEY in turns.text
