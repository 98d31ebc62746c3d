"""Flows on the screen: which there are, the graph of one, what is too large to draw; cancel and revive of the whole."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.flows import FlowHandle
from fencerow.flows.waking import advance
from fencerow.web.dashboard.counting import flows as counting
from fencerow.web.dashboard.graph import BOX_HEIGHT, BOX_WIDTH, drawn_graph
from fencerow.web.dashboard.screens import flows
from tests.web.dashboard.visiting import Reader, Visits


async def documents(app: App, name: str = "documents") -> FlowHandle:
    """Two lines of work that meet, of which one fails; a stage; a callback that is made and one that is not."""
    flow = app.flow(name)
    good = flow.add("scan", app.jobs["pages"].call("a.pdf"), stage=True)
    bad = flow.add("letter", app.jobs["mail"].call("nobody"))
    flow.add("join", app.jobs["pages"].call("b.pdf"), needs=[good, bad])
    flow.add("tidy", app.jobs["pages"].call("c.pdf"), after=[bad])
    flow.on_failed(app.jobs["pages"].call("told.pdf"))
    flow.on_succeeded(app.jobs["pages"].call("praised.pdf"))
    return await flow.asubmit()


def boxes(page: Reader) -> list[str]:
    """The classes of the boxes of a picture."""
    return [found["class"] for _, found in page.tags if found.get("class", "").startswith("node ")]


async def test_a_flow_is_found_drawn_and_told(app: App, visits: Visits) -> None:
    handle = await documents(app)
    before = await visits.see(f"/flows/{handle.id}")
    async with asyncio.timeout(60), app.worker():
        await handle.await_ended()
    page, found = await visits.see(f"/flows/{handle.id}?x=1"), await visits.see("/flows?x=1")

    assert sorted(boxes(before)) == ["node queued", "node queued", "node waiting", "node waiting"]
    assert "needs 2 more of 2" in before.text and "after letter" in before.text and "not yet" in before.text
    assert [each.get("class") for tag, each in before.tags if tag == "path" and "d" in each].count(
        "wire todo"
    ) == 3
    assert sorted(boxes(page)) == ["node cancelled", "node failed", "node succeeded", "node succeeded"]
    assert "wire broken" in [each.get("class") for tag, each in page.tags if tag == "path"]
    assert (
        "ValueError" in page.text
        and "1 of 2 were made" in page.text
        and "Stages" in page.text
        and "{" not in page.text
    )
    assert "4 of 4 jobs ended" in page.text and "4 of 4" in found.text and "failed" in found.text


async def test_flows_are_found_by_state_and_name_and_page_by_page(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "PAGE", 2)
    handles = [await documents(app, name) for name in ("one", "two", "three")]
    await handles[0].acancel()
    await app.engine.arun(advance(actor=None))  # what a worker does: the flow ends
    newest = await visits.see("/flows")
    (older,) = [found["href"] for tag, found in newest.tags if tag == "a" and found.get("rel") == "next"]
    oldest = await visits.see(older)
    running, cancelled = await visits.see("/flows?state=running"), await visits.see("/flows?state=cancelled")
    named = await visits.see("/flows?name=two")
    monkeypatch.setattr(flows, "LOOK", 2)
    narrow = await visits.see("/flows?state=failed")

    def shown(page: Reader) -> list[str]:
        ids = [found.get("href", "").removeprefix("/flows/") for _, found in page.tags]
        return [each for handle in handles for each in ids if each == handle.id]

    assert shown(newest) == [handles[1].id, handles[2].id] and shown(oldest) == [handles[0].id]
    assert shown(running) == [handles[1].id, handles[2].id] and shown(cancelled) == [handles[0].id]
    assert shown(named) == [handles[1].id]
    assert shown(narrow) == [] and "2 were looked at" in narrow.text and "Look further" in narrow.text
    for query in ("state=odd", "before=x", f"before=1.{new_id()}x"):
        await visits.see(f"/flows?{query}", status=422)

    scan = await handles[0].ajob_named("scan")
    await scan.arevive()  # alone: its flow has ended, and has not
    monkeypatch.setattr(flows, "PAGE", 9)
    monkeypatch.setattr(flows, "LOOK", 99)
    running, cancelled = (
        await visits.see("/flows?state=running&x=1"),
        await visits.see("/flows?state=cancelled&x=1"),
    )

    assert shown(running) == [each.id for each in handles] and shown(cancelled) == []


async def test_a_flow_too_large_to_draw_is_shown_in_groups_and_its_jobs_by_page(
    app: App, visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "DRAWN_MAX", 10)
    monkeypatch.setattr(counting, "LOOKED_MAX", 5)
    monkeypatch.setattr(flows, "PAGE", 8)
    flow = app.flow("wide")
    parts = [flow.add(f"part {at}", app.jobs["pages"].call(f"{at}.pdf")) for at in range(20)]
    flow.add("join", app.jobs["mail"].call("ada"), needs=parts)
    handle = await flow.asubmit()
    page = await visits.see(f"/flows/{handle.id}")
    (more,) = [found["href"] for tag, found in page.tags if tag == "a" and found.get("rel") == "next"]
    last = await visits.see(f"/flows/{handle.id}?after=15")
    queued = await visits.see(f"/flows/{handle.id}?state=queued")
    monkeypatch.setattr(counting, "GROUPED_MAX", 15)
    cut = await visits.see(f"/flows/{handle.id}?cut=1")

    assert boxes(page) == ["node queued", "node waiting"] and "0 of 20 ended" in page.text
    assert "20 queued" in page.text and "15 of the queued were not looked at" in page.text
    assert "part 7" in page.text and "part 8" not in page.text and more.endswith("after=7")
    assert "and 12 more" in last.text and "needs 20 more of 20" in last.text
    assert "Jobs that are queued" in queued.text and "counted of its first" not in page.text
    assert (
        boxes(cut) == ["node queued"]
        and "counted of its first 15 jobs" in cut.text
        and "15 queued" in cut.text
    )
    await visits.see(f"/flows/{handle.id}?after=x", status=422)
    await visits.see(f"/flows/{new_id()}", status=404)


async def test_a_person_cancels_a_flow_and_runs_it_again(app: App, visits: Visits) -> None:
    handle = await documents(app)
    path = f"/flows/{handle.id}"
    cancelled = await visits.press(f"{path}/cancel", back=path, on=path, reason="wrong papers")
    again = await visits.press(f"{path}/cancel", back=path, on=path)
    revived = await visits.press(f"{path}/revive", back=path, on=path)
    log = await visits.see("/audit")

    assert "4 jobs cancelled" in cancelled.text and "mara" in cancelled.text
    assert "ended already" in again.text
    assert "2 jobs queued again, and 2 that wait for these" in revived.text
    assert "wrong papers" in log.text and handle.id in log.text
    assert (await handle.acounts()).waiting == 2


def test_lines_lead_from_box_to_box_and_no_box_stands_upon_another() -> None:
    levels = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 3}
    edges = [("a", "c"), ("b", "c"), ("b", "d"), ("c", "e"), ("d", "e"), ("a", "f"), ("e", "f")]
    drawn = drawn_graph(levels, edges)

    corners = sorted(drawn.corners.values())
    assert all(x != left or y - top >= BOX_HEIGHT for (left, top), (x, y) in pairwise(corners))
    assert min(y for _, y in corners) >= 0 and drawn.width == 3 * 208 + BOX_WIDTH
    assert set(drawn.paths) == set(edges)
    assert drawn.paths["a", "f"].count("C") == 3  # through the two columns between
