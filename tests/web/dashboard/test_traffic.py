"""The numbers behind pictures: what came and ended by stretches of time, looked at within a bound."""

from __future__ import annotations

import pytest

from fencerow import App
from fencerow.core.errors import InvalidInput
from fencerow.db.run import ask
from fencerow.web.dashboard.counting.traffic import LOOKED_AT_MAX, Heap, Traffic, read_traffic
from fencerow.web.dashboard.traffic import KeptPictures, flow_of, queues_of, range_of
from tests.web.dashboard.visiting import Visits
from tests.web.gateway.conftest import ended

MINUTE_US = 60_000_000


async def test_what_came_and_ended_is_found_by_queue(app: App) -> None:
    async with app.worker():
        done = [await app.jobs["pages"].asubmit(f"{number}.pdf") for number in range(3)]
        failed = await app.jobs["mail"].asubmit("nobody")
        for handle in (*done, failed):
            await ended(app, handle.id)
    await app.jobs["pages"].using(delay_s=3600).asubmit("later.pdf")
    found = await app.client.arun(ask(read_traffic(MINUTE_US, 60)))
    everything, mine = flow_of(found), flow_of(found, "documents")

    assert (everything.succeeded, everything.failed, everything.submitted) == (3, 1, 5)
    assert (mine.succeeded, mine.failed, mine.submitted) == (3, 0, 4)
    assert queues_of(found) == {"documents", "letters"}
    assert len(everything.points) == 60 and everything.exact
    assert everything.p50_s is not None and everything.p95_s is not None
    assert 0 <= everything.p50_s <= everything.p95_s


def test_of_many_jobs_the_number_is_estimated_from_the_newest_and_is_told_as_such() -> None:
    """A hundred in the last six seconds of a minute: as if there had been a thousand."""
    at = 100 * MINUTE_US
    half = LOOKED_AT_MAX // 2
    took = {"a": [1000] * half, "b": [3000] * half}
    heap = Heap(at, "succeeded", at + 54_000_000, {"a": half, "b": half}, took)
    traffic = Traffic(at + MINUTE_US, MINUTE_US, 2, [heap])
    both, one = flow_of(traffic).points[0], flow_of(traffic, "b").points[0]

    assert (both.succeeded, both.exact, both.p95_s) == (1000, False, 3.0)
    assert (one.succeeded, one.p50_s) == (500, 3.0)
    assert flow_of(traffic, "c").exact


def test_a_stretch_without_jobs_has_no_latency_and_a_small_picture_is_drawn_all_the_same() -> None:
    flow = flow_of(Traffic(100 * MINUTE_US, MINUTE_US, 3, []))

    assert flow.is_empty and flow.latest.p50_s is None
    assert flow.spark == "M0 19L40 19L80 19"


def test_a_range_that_is_none_is_told() -> None:
    with pytest.raises(InvalidInput, match="the range is '1y'"):
        range_of("1y")


async def test_what_was_read_serves_all_pages_for_a_while(lite_app: App) -> None:
    kept = KeptPictures()
    first, clock_us = await kept.traffic(lite_app.client, "1h")
    again, nothing = await kept.traffic(lite_app.client, "1h")
    other, _ = await kept.traffic(lite_app.client, "7d")

    assert again is first and (clock_us, nothing) == (first.now_us, None)
    assert other is not first and other.stretches == 84


async def test_pages_have_the_numbers_in_a_table_beside_their_pictures(
    lite_app: App, visits_lite: Visits
) -> None:
    await lite_app.jobs["pages"].asubmit("a.pdf")
    for path in ("/?range=24h", "/queues/one?name=documents&range=7d"):
        page = await visits_lite.see(path)
        figures = [found for tag, found in page.tags if tag == "figure"]
        tables = [found["id"] for tag, found in page.tags if tag == "table" and "id" in found]
        heads = [found["data-name"] for tag, found in page.tags if tag == "th" and "data-name" in found]

        assert [each["id"] for each in figures] == ["throughput", "latency"]
        assert {each["data-table"] for each in figures} <= set(tables)
        assert {name for each in figures for name in each["data-columns"].split()} <= set(heads)
        assert [found["data-value"] for tag, found in page.tags if "data-value" in found].count("1") == 1
    await visits_lite.see("/?range=1y", status=422)
