"""The screen of capacity: what comes against the slots there are."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from fencerow import App
from fencerow.planning.plan import By
from fencerow.web.dashboard.capacity import WhatIf, loads, pools
from fencerow.web.dashboard.counting.capacity import LOOKED_MAX, ComingJobs, Took
from tests.web.dashboard.visiting import Visits
from tests.web.gateway.conftest import ended

HOUR_US = 3_600_000_000


def a_worker(*groups: tuple[Sequence[str], int], claims: bool = True) -> Any:
    made = [SimpleNamespace(queues=queues, slots=slots) for queues, slots in groups]
    return SimpleNamespace(claims=claims, stated=SimpleNamespace(slot_groups=made))


def came(queue: str, jobs: int, looked: int = 0) -> ComingJobs:
    return ComingJobs(queue, "job", jobs, looked or jobs, HOUR_US, 2 * HOUR_US)


def took(queue: str, mean_s: float, failures: int = 0) -> Took:
    return Took(queue, "job", 10, failures, 10, mean_s, 2 * mean_s)


def test_queues_that_share_slots_are_one_pool_and_paused_workers_have_none() -> None:
    workers = [
        a_worker((("a", "b"), 4), (("c",), 1)), a_worker((("b", "d"), 2)), a_worker((("a",), 50), claims=False),
    ]  # fmt: skip
    found = pools(loads([came("a", 60)], [took("a", 60.0)], 3_600, By.MEAN), workers, {"e": 3}, WhatIf())

    assert {each.queues: float(each.slots) for each in found} == {
        ("a", "b", "d"): 6.0,
        ("c",): 1.0,
        ("e",): 0.0,
    }


@pytest.mark.parametrize(
    ("by", "what_if", "needed", "keeps_up", "drain_s"),
    [
        (By.MEAN, WhatIf(), 1, True, 30 * 60 / 1),  # 30 min of work wait, and 60 of 120 minutes are free
        (By.P95, WhatIf(), 2, True, None),
        (By.MEAN, WhatIf(arrivals=3), 3, False, None),  # type: ignore[arg-type]
        (By.MEAN, WhatIf(slots=4), 1, True, 30 / 420 * 3_600),  # type: ignore[arg-type]
        (By.MEAN, WhatIf(outage_s=3_600), 1, True, 90 * 60),
    ],
)
def test_a_load_is_reckoned_as_a_plan_does(
    by: By, what_if: WhatIf, needed: int, keeps_up: bool, drain_s: float | None
) -> None:
    kinds = loads([came("a", 60)], [took("a", 60.0)], 3_600, by)
    (pool,) = pools(kinds, [a_worker((("a",), 2))], {"a": 30}, what_if)

    assert (pool.slots_needed, pool.keeps_up) == (needed, keeps_up)
    assert pool.drain_s == (None if drain_s is None else pytest.approx(drain_s))


def test_failed_attempts_and_a_look_that_was_cut_count() -> None:
    (kind,) = loads([came("a", 60, looked=LOOKED_MAX)], [took("a", 60.0, failures=10)], 86_400, By.MEAN)

    assert float(kind.per_hour) == 60  # in the hour since the first that was looked at
    assert kind.slots == pytest.approx(1.75)  # 1 + 1/2 + 1/4 attempts


async def test_the_page_tells_what_came_and_what_it_took(app: App, visits: Visits) -> None:
    jobs = [await app.asubmit_by_name("pages", {"path": "a.pdf"}) for _ in range(3)]
    await ended(app, jobs[-1].id)
    await app.asubmit_by_name("mail", {"to": "ada"})
    page = await visits.see("/capacity")
    later = await visits.see("/capacity?arrivals=100&slots=0.5&outage=2&window=24h&by=p95")
    wrong = [
        await visits.see(f"/capacity?{each}", status=422) for each in ("arrivals=x", "outage=-1", "window=y")
    ]

    assert "pages documents 3" in page.text and "mail letters 1" in page.text
    assert "none has ended" in page.text and "no slots" in page.text
    assert "of the last 24h" in later.text and all(
        "expected" in each.text or "windows" in each.text for each in wrong
    )
