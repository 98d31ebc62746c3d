"""The conditions of a claim, each with what was found: pure functions of what was read."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from fencerow.command.times import span
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import Happening, JobRecord
from fencerow.core.model.state import State
from fencerow.db.text import amount, argument
from fencerow.doctor.loads import WorkerLoad
from fencerow.doctor.places import GatePlace
from fencerow.operators.held import HeldJob
from fencerow.operators.queues import PausedQueue
from fencerow.turns.telling import counted, doing

if TYPE_CHECKING:
    from fencerow.limits.looking import LimitTurns
    from fencerow.unique.keys import UniqueKey

AHEAD_MAX = 1_000
NAMES_SHOWN = 5
HOLDERS_NAMED = 100
CHANGED = {"run_at_us": "when it is due", "priority": "priority", "queue": "queue", "args_bytes": "arguments"}
LATE = "what is committed late is found within max(1 s, 50 × the time of a look at the whole queue)"


class Condition(msgspec.Struct, frozen=True):
    """One condition of the claim. `holds` is None where it cannot be known or plays no part."""

    name: str
    holds: bool | None
    found: str
    facts: dict[str, Any] = {}


def queued(job: JobRecord) -> Condition:
    if job.state is State.WAITING:
        return Condition("is queued", False, "it is suspended: it waits for a signal, a child or a time")
    return Condition("is queued", True, f"in queue {job.queue}, priority {job.priority}")


def suspended(job: JobRecord, timeline: Sequence[Happening], now_us: int) -> Condition | None:
    """What a job waits for that is at no gate, as its last attempt said; None of all others."""
    told = [each for each in timeline if each.kind == "suspended"]
    if job.state is not State.WAITING or job.gate is not None or not told:
        return None
    last = told[-1]
    detail = last.detail.get("detail") if isinstance(last.detail, dict) else None
    what = str(detail.get("reason") or "") if isinstance(detail, dict) else ""
    found = f"it is suspended since {ago(last.at_us, now_us).removesuffix(' ago')}"
    return Condition(
        "is queued", False, f"{found}, and waits for {what}" if what else found, {"since_us": last.at_us}
    )


def turn(
    job: JobRecord, place: GatePlace, pause: PausedQueue | None, living: list[WorkerLoad], now_us: int
) -> Condition:
    """Whether a job at a gate gets its turn: who has those that there are, and who comes before it."""
    facts: dict[str, Any] = {"gate": place.gate, "before": place.before}
    name = "its key and limits let it start"
    if job.run_at_us > now_us:
        return Condition(name, None, f"{place.what} is asked when it is due", facts)
    if pause is not None:
        return Condition(name, None, f"jobs of open queues go before it at {place.what}", facts)
    before = f"due jobs that come before it: {counted(place.before)}" if place.before else "it is the next"
    key = place.key
    to_do = "a worker queues it within a moment" if living else "no worker is alive: start `fencerow worker`"
    if place.limit is not None:
        return _turn_of_limit(place.limit, place.what, before, to_do, facts, now_us)
    if key is None:
        return Condition(name, False, f"it waits at {place.what}; {before}", facts)
    facts |= {"taken": len(key.holders), "at_once": key.at_once, "holders": [each.id for each in key.holders]}
    if len(key.holders) < key.at_once:
        return Condition(name, False, f"{place.what} has room; {before}; {to_do}", facts)
    first = key.holders[0]
    found = (
        f"{place.what} is taken, {len(key.holders)} of {key.at_once}, since {ago(first.since_us, now_us)} "
    )
    found += f"by job {first.id} ({first.name}), which {doing(first, now_us)}; {before}. "
    found += f"`fencerow why {first.id}` says what keeps that one; `fencerow exclusive show` shows the key"
    return Condition(name, False, found, facts)


def _turn_of_limit(
    limit: LimitTurns, what: str, before: str, to_do: str, facts: dict[str, Any], now_us: int
) -> Condition:
    """Whether a limit gives a turn: who has those that there are, and what else keeps it from giving one."""
    name = "its key and limits let it start"
    facts |= {"taken": len(limit.holders), "holders": [each.id for each in limit.holders[:HOLDERS_NAMED]]}
    try:
        room = limit.room
    except InvalidInput as error:
        return Condition(name, False, f"{what} cannot be read: {error.what}; `fencerow doctor`", facts)
    if room.count:
        return Condition(name, False, f"{what} has room; {before}; {to_do}", facts)
    found = f"{what} lets none start now: {room.why}"
    if room.again_us is not None:
        found += f"; there may be one in {span(max(0, room.again_us - now_us) / 1e6)}"
    if limit.holders:
        first = limit.holders[0]
        found += f"; job {first.id} ({first.name}) got one {ago(first.since_us, now_us)} and {doing(first, now_us)}"
    return Condition(name, False, f"{found}; {before}. `fencerow limits show` names all who have one", facts)


def changed(changes: Sequence[Happening], now_us: int) -> Condition:
    """What people changed of the job since its submit, if they did: it decides nothing, and explains much."""
    last = changes[-1]
    by = f" by {last.actor}" if last.actor else ""
    times = "changed" if len(changes) == 1 else f"changed {len(changes)} times, the last time"
    detail = last.detail if isinstance(last.detail, dict) else {}
    what = sorted(CHANGED[each] for each in detail if each in CHANGED)
    found = f"{times} {ago(last.at_us, now_us)}{by}: {', '.join(what) or 'something'}"
    return Condition(
        "is as it was submitted", None, found, {"at_us": last.at_us, "by": last.actor, "detail": last.detail}
    )


def unique(keys: Sequence[UniqueKey], timeline: Sequence[Happening], now_us: int) -> Condition | None:
    """Under which keys submits find the job, and how often they took its place: it decides nothing, and explains
    why it is due later than it was. None of a job without a key."""
    if not keys:
        return None
    notes = [each for each in timeline if each.kind == "replaced"]
    found = ", ".join(_under(each, now_us) for each in keys)
    if notes:
        times = "once" if len(notes) == 1 else f"{len(notes)} times"
        found += f"; later submits took its place {times}, the last one {ago(notes[-1].at_us, now_us)}"
    facts = {"keys": [msgspec.to_builtins(each) for each in keys], "replaced": len(notes)}
    return Condition("is like no other", None, f"submits find it under {found}", facts)


def _under(key: UniqueKey, now_us: int) -> str:
    if key.until_us is None:
        return f"{key.scope}: {key.key}"
    left_s = (key.until_us - now_us) / 1e6
    return f"{key.scope}: {key.key}" + (f" for {span(left_s)} more" if left_s > 0 else "")


def due(job: JobRecord, living: list[WorkerLoad], now_us: int) -> Condition:
    left_s = (job.run_at_us - now_us) / 1e6
    found = f"due in {span(left_s)}" if left_s > 0 else f"due since {span(-left_s)}"
    facts = {"run_at_us": job.run_at_us, "now_us": now_us}
    behind_s = max((each.clock_behind_s for each in living), default=0.0)
    if left_s <= 0 or not behind_s:
        return Condition("is due", left_s <= 0, found, facts)
    written_us = job.claimed_at_us or job.revived_at_us or job.submitted_at_us
    is_due = left_s <= behind_s and written_us > now_us
    found += f" by the database's clock, which went back by {span(behind_s)}"
    found += ": it was due before, and is claimed now too" if is_due else ""
    return Condition("is due", is_due, found, {**facts, "clock_behind_s": behind_s})


def unpaused(job: JobRecord, pause: PausedQueue | None, now_us: int) -> Condition:
    if pause is None:
        return Condition("queue is open", True, f"nobody has paused queue {job.queue}")
    by = f" by {pause.paused_by}" if pause.paused_by else ""
    reason = f": {pause.reason}" if pause.reason else ""
    return Condition(
        "queue is open",
        False,
        f"queue {job.queue} was paused {ago(pause.paused_at_us, now_us)}{by}{reason}",
        {"paused_at_us": pause.paused_at_us, "paused_by": pause.paused_by, "reason": pause.reason},
    )


def unexpired(job: JobRecord, now_us: int) -> Condition:
    if job.expires_at_us is None:
        return Condition("is still in time", True, "it never expires")
    left_s = (job.expires_at_us - now_us) / 1e6
    found = (
        f"expires in {span(left_s)}" if left_s > 0 else f"expired {span(-left_s)} ago: a worker ends it soon"
    )
    return Condition("is still in time", left_s > 0, found, {"expires_at_us": job.expires_at_us})


def cancel(job: JobRecord, now_us: int) -> Condition:
    if job.cancel_requested_at_us is None:
        return Condition("is still wanted", True, "nobody asked to cancel it")
    by = f" by {job.cancel_requested_by}" if job.cancel_requested_by else ""
    return Condition(
        "is still wanted",
        False,
        f"its cancel was asked {ago(job.cancel_requested_at_us, now_us)}{by}",
        {"at_us": job.cancel_requested_at_us, "by": job.cancel_requested_by},
    )


def known(job: JobRecord, living: list[WorkerLoad]) -> Condition:
    name = "a living worker knows the job"
    if not living:
        return Condition(name, False, "no worker is alive: start `fencerow worker`")
    knowing = [each for each in living if each.knows(job)]
    found = f"living workers that know {job.name}: {len(knowing)} of {len(living)}"
    if not knowing:
        names = {name for each in living for name in each.worker.names or ()}
        found += f"{_closest(job.name, names)}, so deploy the code that declares it, or correct the name"
    return Condition(name, bool(knowing), found, {"workers": _ids(knowing)})


def served(job: JobRecord, living: list[WorkerLoad]) -> Condition:
    serving = [each for each in living if each.serves(job)]
    found = f"living workers that serve queue {job.queue}: {len(serving)} of {len(living)}"
    if living and not serving:
        queues = {name for each in living for name in each.worker.queues or ()}
        found += f"{_closest(job.queue, queues)}, so add it to -Q of a worker, or correct the queue"
    return Condition("a living worker serves the queue", bool(serving), found, {"workers": _ids(serving)})


def both(job: JobRecord, living: list[WorkerLoad]) -> Condition:
    name = "one worker does both"
    able = [each for each in living if each.serves(job) and each.knows(job)]
    if able or not any(each.knows(job) for each in living) or not any(each.serves(job) for each in living):
        return Condition(name, True if able else None, amount(len(able), "worker") if able else "see above")
    found = f"those that know {job.name} do not serve queue {job.queue}: add it to their -Q"
    return Condition(name, False, found, {"workers": _ids([each for each in living if each.knows(job)])})


def claiming(able: list[WorkerLoad]) -> Condition:
    name = "one of those workers claims"
    idle = [each.worker for each in able if not each.worker.claims]
    if len(idle) < len(able) or not able:
        found = f"{len(idle)} of {len(able)} are paused or leaving" if able else "no worker would take it"
        return Condition(name, True if able else None, found)
    paused = sorted({each.name for each in idle if each.stated is not None and not each.stated.leaving})
    fix = f": `fencerow workers resume {argument(paused[0])}`" if paused else ""
    found = f"each worker that would take it ({len(able)}) is paused or leaving{fix}"
    return Condition(name, False, found, {"workers": _ids(able)})


def readable(job: JobRecord, newer: int, locked: int, away: int) -> Condition:
    name = "workers can read its arguments"
    if away:
        found = "the store of its arguments did not answer the workers that took it "
        found += f"(released {amount(away, 'time')}): `fencerow doctor` looks at the store"
        return Condition(name, False, found, {"released": away, "attempt": job.attempt})
    if locked:
        found = "the workers that took it lack the key of its arguments "
        found += f"(released {amount(locked, 'time')}): give it to them"
        return Condition(name, False, found, {"released": locked, "attempt": job.attempt})
    if not newer:
        return Condition(name, True, "no worker released it as too new")
    found = (
        f"its arguments are newer than the code of the workers that took it (released {amount(newer, 'time')}). "
        "Finish the deploy"
    )
    return Condition(name, False, found, {"released": newer, "attempt": job.attempt})


def free(serving: list[WorkerLoad], busy: Sequence[HeldJob], now_us: int) -> Condition:
    known = [each.free for each in serving if each.free is not None]
    if len(known) < len(serving) or not serving:
        return Condition("a slot is free", None, "not known" if serving else "no worker would take it")
    slots = sum(each.worker.slots or 0 for each in serving)
    found = f"{sum(known)} of {amount(slots, 'slot')} free in the workers that would take it"
    if busy and not any(known):
        names = Counter(each.name for each in busy).most_common(NAMES_SHOWN)
        found += f": they run {', '.join(f'{name} ({count})' for name, count in names)}, the longest since "
        found += span((now_us - min(each.claimed_at_us for each in busy)) / 1e6)
    return Condition("a slot is free", any(known), found, {"free": sum(known)})


def alone(job: JobRecord, serving: list[WorkerLoad]) -> Condition:
    name = "may run beside others"
    if not job.suspect:
        return Condition(name, True, "no worker has died while it ran")
    idle = [each for each in serving if not each.runs_suspect]
    return Condition(
        name,
        bool(idle) if serving else None,
        "its last process died while it ran, so it runs apart, and a worker runs few of those at once (one more when "
        f"one ends well, or after 10 s); workers that run none now: {len(idle)} of {len(serving)}",
        {"crashes": job.crashes, "crashes_max": job.crashes_max},
    )


def first(job: JobRecord, before: int, serving: list[WorkerLoad], now_us: int) -> Condition:
    name = "is next in its queue"
    if job.suspect:
        return Condition(name, None, "a worker died while it ran: such jobs wait apart from the others")
    if job.run_at_us > now_us:
        return Condition(name, None, "its place in the queue is known when it is due")
    if job.gate is not None or job.state is State.WAITING:
        return Condition(name, None, "it has no place in the queue until its key and its limits let it start")
    free = sum(each.free or 0 for each in serving)
    shown = f"{before}" if before < AHEAD_MAX else f"{AHEAD_MAX} or more"
    found = f"due jobs of queue {job.queue} that come before it: {shown}; {LATE}"
    return Condition(name, before == 0 or before < free, found, {"ahead": before})


def before_a_slot(
    job: JobRecord,
    pause: PausedQueue | None,
    place: GatePlace | None,
    living: list[WorkerLoad],
    now_us: int,
    waits: Condition | None = None,
) -> list[Condition]:
    """What must hold before any slot matters. `waits`: what is said of a job that waits for a label."""
    return [
        waits or (queued(job) if place is None else turn(job, place, pause, living, now_us)),
        due(job, living, now_us),
        unpaused(job, pause, now_us),
        unexpired(job, now_us),
        cancel(job, now_us),
        known(job, living),
        served(job, living),
        both(job, living),
        claiming([each for each in living if each.serves(job) and each.knows(job)]),
    ]


def _closest(wanted: str, names: set[str]) -> str:
    close = difflib.get_close_matches(wanted, sorted(names), n=3, cutoff=0.5)
    return f" (the closest that they have: {', '.join(close)})" if close else ""


def _ids(workers: list[WorkerLoad]) -> list[str]:
    return [each.worker.id for each in workers]


def ago(then_us: int | None, now_us: int) -> str:
    return "" if then_us is None else f"{span((now_us - then_us) / 1e6)} ago"
