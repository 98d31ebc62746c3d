"""Overview: what needs a person first, then how many jobs stand where, queues, workers, and what failed last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencerow.core.finding import Finding
from fencerow.core.model.state import State, WorkerState
from fencerow.db.run import ask
from fencerow.operators.queues import PausedQueue
from fencerow.web.dashboard.cost import ROWS_OF_QUEUES_MAX
from fencerow.web.dashboard.counting import (
    COUNTED_MAX,
    RECENT_MAX,
    LiveCount,
    latest_failures,
    live_counts,
    recent_counts,
)
from fencerow.web.dashboard.screen import Look, Screen, Section
from fencerow.web.dashboard.standing import by_queue
from fencerow.web.dashboard.traffic import RANGES, flow_of

PROBLEMS_SHOWN = 5  # kinds, the worst; Health has all
ALIKE_SHOWN = 3  # of each kind
QUEUES_SHOWN = 8
WORKERS_SHOWN = 8
FAILURES_SHOWN = 8
WORKERS_READ = 500
PAUSED_SHOWN = 5  # with jobs; Queues has all
PAUSED = "paused queue"  # what the doctor says of it, this page says with what it shows


async def overview(look: Look) -> dict[str, Any]:
    """Six statements; what the doctor finds was found beside it."""
    client = look.client
    chosen = look.query.get("range", "1h")
    traffic, clock_us = await look.kept.traffic(client, chosen)
    live = await client.arun(ask(live_counts()))
    recent = await client.arun(ask(recent_counts()))
    paused = await client.apaused_queues()
    workers = await client.workers.aregistered(state=WorkerState.ALIVE, limit=WORKERS_READ)
    failures = await client.arun(ask(latest_failures(limit=FAILURES_SHOWN)))
    now_us = clock_us or (live[0].now_us if live else await look.now_us())
    queues = by_queue(live, paused, now_us)
    found = await look.problems.found()
    wrong = [each for each in found.wrong if each.name != PAUSED] if found is not None else []
    return {
        "now_us": now_us,
        "ranges": RANGES,
        "chosen": chosen,
        "range": RANGES[chosen],
        "flow": flow_of(traffic),
        "flows": {each.name: flow_of(traffic, each.name) for each in queues[:QUEUES_SHOWN]},
        "problems": found,
        "problems_shown": PROBLEMS_SHOWN,
        "wrong": wrong,
        "kinds": alike(wrong),
        "alike_shown": ALIKE_SHOWN,
        "counts": counts_of(live, recent, now_us),
        "most": COUNTED_MAX,
        "queues": queues[:QUEUES_SHOWN],
        "queues_all": len(queues),
        "paused": paused_and_growing(paused, live),
        "paused_shown": PAUSED_SHOWN,
        "workers": workers[:WORKERS_SHOWN],
        "workers_all": len(workers),
        "slots": sum(each.slots or 0 for each in workers),
        "failures": failures,
    }


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings, those together that say the same of several things: one name, and the same to do."""
    kinds: dict[tuple[str, str, str | None], list[Finding]] = {}
    for each in findings:
        kinds.setdefault((each.level, each.name, each.fix), []).append(each)
    return list(kinds.values())


def counts_of(live: Sequence[LiveCount], recent: dict[State, int], now_us: int) -> dict[str, dict[str, Any]]:
    """Each state: how many jobs, whether there may be more, and since when the first of them waits or runs."""
    found: dict[str, dict[str, Any]] = {}
    for state in State:
        mine = [each for each in live if each.state is state]
        due = [each.first_us for each in mine if each.first_us is not None and each.first_us <= now_us]
        found[state.value] = {
            "jobs": sum(min(each.jobs, COUNTED_MAX) for each in mine)
            if mine or state not in recent
            else min(recent[state], RECENT_MAX),
            "more": any(each.jobs > COUNTED_MAX for each in mine) or recent.get(state, 0) > RECENT_MAX,
            "first_us": min(due) if due else None,
            "recent": state in recent,
        }
    return found


def paused_and_growing(paused: Sequence[PausedQueue], live: Sequence[LiveCount]) -> list[dict[str, Any]]:
    """Paused queues in which jobs wait."""
    queued = {each.queue: each.jobs for each in live if each.state is State.QUEUED}
    return [{"pause": each, "jobs": queued[each.name]} for each in paused if queued.get(each.name)]


SCREENS = (
    Screen(
        "overview",
        "/",
        "Overview",
        overview,
        section=Section.WORK,
        place=10,
        key="o",
        rows_max=ROWS_OF_QUEUES_MAX,
    ),
)
