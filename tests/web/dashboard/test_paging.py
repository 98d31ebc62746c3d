"""Pages of handovers, shares and groups follow each other without a gap, however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from fencerow import App
from fencerow.events.groups import GroupStart, make_group
from fencerow.web.dashboard.counting import shares as counting
from fencerow.web.dashboard.screens import events, handovers, queues
from tests.handovers import stage
from tests.kit.jobs import AnyEngine
from tests.web.dashboard.visiting import Reader, Visits

Found = Callable[[Reader], list[str]]


async def followed(visits: Visits, path: str, found: Found) -> list[list[str]]:
    """What each page has, from the first on."""
    pages = []
    while path:
        page = await visits.see(path)
        pages.append(found(page))
        path = next((tag["href"] for _, tag in page.tags if tag.get("rel") == "next"), "")
    return pages


def hidden(name: str) -> Found:
    """The values of fields of this name."""
    return lambda page: page.values(name)


def linked(before: str) -> Found:
    """What the addresses of links have behind this."""
    return lambda page: [
        tag["href"].removeprefix(before)
        for name, tag in page.tags
        if name == "a" and tag.get("href", "").startswith(before)
    ]


async def test_handovers(app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handovers, "SHOWN", 2)
    await app.asubmit_by_name("pages", {"path": "a"})
    ids = await asyncio.to_thread(stage.line, cast("AnyEngine", app.engine), 5)
    pages = await followed(visits, "/handovers?receiver=bot", linked("/jobs/"))
    odd = await visits.see("/handovers?after=x", status=422)

    assert pages == [list(ids[:2]), list(ids[2:4]), [ids[4]]]
    assert "place of a handover is expected" in odd.text


async def test_shares(app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with jobs and those with a weight, between each other."""
    monkeypatch.setattr(queues, "SHARES_SHOWN", 2)
    for priority, share in enumerate("acec"):
        await app.jobs["pages"].using(share=share, priority=priority).asubmit("x")
    for queue, share in (("documents", "b"), ("documents", "c"), ("letters", "a"), ("letters", "")):
        await app.client.shares.aweigh(queue, share, 3)
    pages = await followed(visits, "/queues/shares", hidden("share"))
    monkeypatch.setattr(counting, "COUNTED_MAX", 1)
    monkeypatch.setattr(queues, "COUNTED_MAX", 1)
    second = await visits.see("/queues/shares?queue=documents&share=b&n=1")

    assert pages == [["a", "b"], ["c", "e"], ["", "a"]]
    assert [text.strip() for text in second.texts].count("1+") == 1, "of two priorities"


async def test_groups(app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "GROUPS_SHOWN", 2)
    await app.asubmit_by_name("pages", {"path": "a"})
    for name in ("d", "a", "c", "b", "e"):
        await app.engine.arun(make_group(name, ["order.*"], partitions=1, start=GroupStart("beginning")))
    pages = await followed(visits, "/events", linked("/events/group?name="))

    assert pages == [["a", "b"], ["c", "d"], ["e"]]
