"""Capacity: what comes against what the slots of the workers can do, and what if more came, or an outage was before."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fencerow.core.errors import InvalidInput
from fencerow.core.model.state import State, WorkerState
from fencerow.db.run import ask
from fencerow.planning.plan import By
from fencerow.web.dashboard.capacity import WhatIf, loads, pools
from fencerow.web.dashboard.cost import ROWS_OF_QUEUES_MAX
from fencerow.web.dashboard.counting import COUNTED_MAX, live_counts
from fencerow.web.dashboard.counting.capacity import LOOKED_MAX, NAMES_MAX, came, took
from fencerow.web.dashboard.screen import Look, Screen, Section
from fencerow.web.dashboard.searching import first_id

WINDOWS_S = {"10min": 600, "1h": 3_600, "24h": 86_400}
WORKERS_MAX = 500
POOLS_SHOWN = 100
KINDS_SHOWN = 100
TIMES_MAX = 1_000
OUTAGE_H_MAX = 24 * 30


async def capacity(look: Look) -> dict[str, Any]:
    """Five statements: the clock, what came, what it took, the workers, how many jobs wait."""
    query = look.query
    window, by = query.get("window", "1h"), query.get("by", By.MEAN.value)
    if window not in WINDOWS_S or by not in set(By):
        raise InvalidInput(
            "there is no such look", f"windows are {', '.join(WINDOWS_S)}", "choose one on the page"
        )
    what_if = _what_if(query.get("arrivals", ""), query.get("slots", ""), query.get("outage", ""))
    now_us = await look.now_us()
    window_s = WINDOWS_S[window]
    arrived = await look.client.arun(ask(came(first_id(now_us - window_s * 1_000_000))))
    ended = await look.client.arun(ask(took(window_s)))
    workers = await look.client.workers.aregistered(state=WorkerState.ALIVE, limit=WORKERS_MAX)
    waiting: dict[str, int] = {}
    for each in await look.client.arun(ask(live_counts())):
        if each.state is not State.RUNNING:
            waiting[each.queue] = waiting.get(each.queue, 0) + each.jobs
    kinds = loads(arrived, ended, window_s, By(by))
    found = pools(kinds, workers, waiting, what_if)
    return {
        "now_us": now_us,
        "pools": found[:POOLS_SHOWN],
        "hidden": max(0, len(found) - POOLS_SHOWN),
        "kinds": kinds[:KINDS_SHOWN],
        "unknown": sum(each.minutes is None for each in kinds),
        "cut": len(arrived) == NAMES_MAX,
        "sampled": bool(arrived) and arrived[0].looked >= LOOKED_MAX,
        "looked_max": LOOKED_MAX,
        "most": COUNTED_MAX,
        "windows": list(WINDOWS_S),
        "window": window,
        "by": by,
        "what_if": what_if,
        "outage_h": what_if.outage_s / 3_600,
    }


def _what_if(arrivals: str, slots: str, outage: str) -> WhatIf:
    """What a person thinks of.

    Raises:
        InvalidInput: it is no number, or out of range.
    """
    return WhatIf(
        _number(arrivals or "1", "arrivals", TIMES_MAX),
        _number(slots or "1", "slots", TIMES_MAX),
        int(_number(outage or "0", "hours of outage", OUTAGE_H_MAX) * 3_600),
    )


def _number(text: str, what: str, most: int) -> Fraction:
    digits = text.replace(".", "", 1)
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= 8 and Fraction(text) <= most
    if not fits:
        raise InvalidInput(
            f"{what} is {ascii(text)[:40]}", f"a number from 0 to {most} is expected", "correct it"
        )
    return Fraction(text)


SCREENS = (
    Screen(
        "capacity",
        "/capacity",
        "Capacity",
        capacity,
        section=Section.SYSTEM,
        place=220,
        key="c",
        rows_max=ROWS_OF_QUEUES_MAX,
    ),
)
