"""Queues: what stands in each, what came and ended, who shares it; pause and resume it, set the weight of a share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencerow.core.errors import InvalidInput
from fencerow.core.model.state import WorkerState
from fencerow.db.run import ask
from fencerow.db.text import amount
from fencerow.operators.queues import paused_queue
from fencerow.web.dashboard.cost import ROWS_OF_QUEUES_MAX
from fencerow.web.dashboard.counting import COUNTED_MAX, live_counts
from fencerow.web.dashboard.counting.shares import ShareStanding, shares_page
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section
from fencerow.web.dashboard.standing import QueueStanding, by_queue
from fencerow.web.dashboard.traffic import RANGES, flow_of, queues_of

WORKERS_MAX = 500
QUEUES_SHOWN = 500
SHARES_SHOWN = 50
HOUR = "1h"


async def queues(look: Look) -> dict[str, Any]:
    """Four statements: counts, pauses, workers, what came and ended in the last hour."""
    client = look.client
    live = await client.arun(ask(live_counts()))
    paused = await client.apaused_queues()
    workers = await client.workers.aregistered(state=WorkerState.ALIVE, limit=WORKERS_MAX)
    traffic, clock_us = await look.kept.traffic(client, HOUR)
    now_us = clock_us or (live[0].now_us if live else await look.now_us())
    found = {each.name: each for each in by_queue(live, paused, now_us)}
    serving: dict[str, int] = {}
    for worker in workers:
        for name in worker.queues or ():
            serving[name] = serving.get(name, 0) + 1
            found.setdefault(name, QueueStanding(name))  # served, and empty
    shown = list(found.values())[:QUEUES_SHOWN]
    busy = queues_of(traffic)
    return {
        "now_us": now_us,
        "queues": shown,
        "flows": {each.name: flow_of(traffic, each.name) for each in shown if each.name in busy},
        "hidden": max(0, len(found) - QUEUES_SHOWN),
        "any_open": any(each.pause is None for each in found.values()),
        "any_paused": bool(paused),
        "serving": serving,
        "most": COUNTED_MAX,
    }


async def queue(look: Look) -> dict[str, Any]:
    """Four statements: what came and ended, counts, its pause, workers."""
    client, name, chosen = look.client, look.query.get("name", ""), look.query.get("range", "1h")
    traffic, clock_us = await look.kept.traffic(client, chosen)
    live = [each for each in await client.arun(ask(live_counts())) if each.queue == name]
    pause = await client.arun(ask(paused_queue(name)))
    workers = await client.workers.aregistered(state=WorkerState.ALIVE, limit=WORKERS_MAX)
    now_us = clock_us or (live[0].now_us if live else await look.now_us())
    standing = by_queue(live, [pause] if pause else [], now_us)
    return {
        "now_us": now_us,
        "name": name,
        "queue": standing[0] if standing else QueueStanding(name),
        "workers": [each for each in workers if name in (each.queues or ())],
        "most": COUNTED_MAX,
        "ranges": RANGES,
        "chosen": chosen,
        "range": RANGES[chosen],
        "flow": flow_of(traffic, name),
    }


async def shares(look: Look) -> dict[str, Any]:
    """Two statements: a page of the shares, found by jumps along their lanes, and the clock."""
    found = await _shares(look)
    return {
        "now_us": await look.now_us(),
        "shares": found[:SHARES_SHOWN],
        "next_share": found[SHARES_SHOWN - 1] if len(found) > SHARES_SHOWN else None,
        "is_first": not look.query.get("queue"),
        "most": COUNTED_MAX,
    }


async def _shares(look: Look) -> list[ShareStanding]:
    """A page of the shares, and one more if there is one: those behind the share that the address names."""
    after = look.query.get("queue", ""), look.query.get("share", "")
    return await look.client.arun(ask(shares_page(*after, limit=SHARES_SHOWN + 1)))


async def pause(act: Act) -> PressAnswer:
    """Claim nothing of it any more."""
    queue = act.form.get("queue", "")
    if await act.client.apause_queue(queue, reason=act.reason):
        return PressAnswer(f"Queue {queue} is paused. What runs already goes on.")
    return PressAnswer(f"Queue {queue} was paused already, and stays as it was.", changed=False)


async def resume(act: Act) -> PressAnswer:
    """Let claims go on."""
    queue = act.form.get("queue", "")
    if await act.client.aresume_queue(queue):
        return PressAnswer(f"Queue {queue} goes on.")
    return PressAnswer(f"Queue {queue} was not paused.", changed=False)


async def pause_all(act: Act) -> PressAnswer:
    """Pause every queue that has live jobs or is served. A queue that comes later is open."""
    live = await act.client.arun(ask(live_counts()))
    workers = await act.client.workers.aregistered(state=WorkerState.ALIVE, limit=WORKERS_MAX)
    names = dict.fromkeys(
        [*(each.queue for each in live), *(each for one in workers for each in one.queues or ())]
    )
    known = {each.name for each in await act.client.apaused_queues()}
    chosen, left = _chosen([each for each in names if each not in known])
    paused = [each for each in chosen if await act.client.apause_queue(each, reason=act.reason)]
    return PressAnswer(
        f"{amount(len(paused), 'queue')} paused. What runs already goes on.{left}", changed=bool(paused)
    )


async def resume_all(act: Act) -> PressAnswer:
    """Let claims of every queue go on that is paused."""
    chosen, left = _chosen([each.name for each in await act.client.apaused_queues()])
    resumed = [each for each in chosen if await act.client.aresume_queue(each)]
    return PressAnswer(f"{amount(len(resumed), 'queue')} went on.{left}", changed=bool(resumed))


def _chosen(names: Sequence[str]) -> tuple[Sequence[str], str]:
    """As many as one press changes, and what is said of the others."""
    left = amount(len(names) - QUEUES_SHOWN, "queue")
    return names[:QUEUES_SHOWN], f" {left} more were left: press again." if len(names) > QUEUES_SHOWN else ""


async def weigh(act: Act) -> PressAnswer:
    """Set how many turns a share has where one of weight 1 has one."""
    queue, share, text = act.form.get("queue", ""), act.form.get("share", ""), act.form.get("weight", "")
    if not text.isascii() or not text.isdigit():
        raise InvalidInput(
            f"the weight is {ascii(text)[:40]}", "a whole number from 1 to 1000 is expected", "correct it"
        )
    if await act.client.shares.aweigh(queue, share, int(text)):
        return PressAnswer(
            f"The share {share or 'of nobody'} of queue {queue} has the weight {text} from its next turn on."
        )
    return PressAnswer("The share had that weight already.", changed=False)


ACTIONS = (
    Action("/queues/pause", pause),
    Action("/queues/resume", resume),
    Action("/queues/pause-all", pause_all),
    Action("/queues/resume-all", resume_all),
    Action("/queues/weigh", weigh),
)
SCREENS = (
    Screen(
        "queues",
        "/queues",
        "Queues",
        queues,
        section=Section.WORK,
        place=30,
        key="q",
        actions=ACTIONS,
        rows_max=ROWS_OF_QUEUES_MAX,
    ),
    Screen("queue", "/queues/one", "Queue", queue, place=31, rows_max=ROWS_OF_QUEUES_MAX),
    Screen("shares", "/queues/shares", "Shares", shares, place=32, live=False),
)
