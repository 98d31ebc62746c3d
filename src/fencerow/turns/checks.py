"""Turns that nobody gives, keys that one job holds for very long, and gates that nobody needs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

import fencerow.turns.keys as keys
from fencerow.command.times import span
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, info, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, first_column, operation
from fencerow.db.text import amount, argument
from fencerow.turns.gates import NOWHERE
from fencerow.turns.keys import ExclusiveKey, KeySummary
from fencerow.turns.telling import counted, doing

LATE_S = 60.0  # since a gate was to be looked at, or its first job has been due
HELD_S = 3600.0
AGAIN_S = 1.0  # until a second look: a turn that has just become free is given within milliseconds
SHOWN_MAX = 5
COUNTED_MAX = 10_000


class GateCounts(msgspec.Struct, frozen=True):
    """How many gates there are, how many of them nobody needs, how many arrivals nobody has looked at (each counted up
    to 10,000), and for how long the one that has waited longest was to be looked at."""

    gates: int
    idle: int
    arrivals: int
    late_us: int


@operation(alone=True, repeatable=True, writes="")
def count_gates() -> Steps[GateCounts]:
    """The gates and their arrivals."""
    ((gates, idle, arrivals, late_us),) = yield from execute("count_gates", limit=COUNTED_MAX)
    return GateCounts(as_int(gates), as_int(idle), as_int(arrivals), as_int(late_us))


@operation(alone=True, repeatable=True, writes="")
def unreadable_jobs() -> Steps[list[str]]:
    """The first jobs whose key and limits name no gate where they could wait for a turn."""
    return first_column((yield from execute("unreadable_jobs", gate=NOWHERE, limit=SHOWN_MAX)))


def examine_keys(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Whether turns go on, and who holds a key for very long while others wait."""
    yield from _gates(engine.run(count_gates()))
    yield from _unreadable(engine.run(unreadable_jobs()))
    found = engine.run(keys.known_keys(limit=COUNTED_MAX)).keys
    yield from _given_by_nobody(engine, found)
    yield from _held_long(engine, found)


def _gates(counts: GateCounts) -> Iterator[Finding]:
    late_s = counts.late_us / 1e6
    if late_s > LATE_S or counts.arrivals >= COUNTED_MAX:
        yield warn(
            "keys and limits not looked at",
            f"nobody has looked at {_many(counts.arrivals, 'change')} at exclusive keys and limits"
            + (f", and at one that is due for {span(late_s)}" if late_s > 0 else ""),
            "every worker does that: start one, or more",
        )
    if counts.idle >= COUNTED_MAX:
        yield info(
            "keys and limits",
            f"nobody needs {COUNTED_MAX} rows of keys and limits or more; each worker removes them, once a minute",
        )
    else:
        yield ok(
            "keys and limits",
            f"{_many(counts.gates, 'row')} of exclusive keys and limits, of which nobody needs {counts.idle}",
        )


def _unreadable(ids: list[str]) -> Iterator[Finding]:
    if ids:
        yield warn(
            "jobs that never start",
            f"the exclusive key and the limits of {', '.join(ids)} cannot be read: somebody's own SQL wrote these rows",
            f"submit them again through a client, then `fencerow jobs cancel {ids[0]}`",
        )


def _many(count: int, what: str) -> str:
    return f"{count} or more {what}s" if count >= COUNTED_MAX else amount(count, what)


def _given_by_nobody(engine: Engine, found: list[KeySummary]) -> Iterator[Finding]:
    """Keys with a free turn and a due job that could have it, at two looks."""
    free = [each for each in found if each.running + each.queued < each.at_once and _waits_s(each) > LATE_S]
    first = {each.key: _next_of(engine, each.key) for each in free[:SHOWN_MAX]}
    if not any(first.values()):
        return
    time.sleep(AGAIN_S)
    for key, waiter in first.items():
        if waiter is not None and waiter == _next_of(engine, key):
            yield warn(
                "key that lets nobody start",
                f"the exclusive key {key} has room, and job {waiter} waits there",
                f"every worker lets jobs start: start one; `fencerow why {waiter}` looks at the job",
            )


def _next_of(engine: Engine, key: str) -> str | None:
    """Who would get a free turn of the key."""
    look = engine.run(keys.look(key, limit=SHOWN_MAX))
    if len(look.holders) >= look.at_once:
        return None
    due = (each.id for each in look.waiting if each.run_at_us <= look.now_us and not each.paused)
    return next(due, None)


def _held_long(engine: Engine, found: list[KeySummary]) -> Iterator[Finding]:
    long = [each for each in found if each.waiting and _held_s(each) > HELD_S and _waits_s(each) > 0]
    for each in sorted(long, key=_held_s, reverse=True)[:SHOWN_MAX]:
        look = engine.run(keys.look(each.key, limit=1))
        if look.holders:
            yield _held(look)


def _held(look: ExclusiveKey) -> Finding:
    first = look.holders[0]
    return warn(
        "key held for long",
        f"job {first.id} ({first.name}) has the exclusive key {look.key} for "
        f"{span((look.now_us - first.since_us) / 1e6)}: it {doing(first, look.now_us)}; "
        f"{counted(look.waiting_count)} wait",
        f"`fencerow exclusive show {argument(look.key)}` shows all; `fencerow jobs cancel {first.id}` ends it, and "
        "`timeout_s` would bound it",
    )


def _waits_s(key: KeySummary) -> float:
    return 0.0 if key.waits_since_us is None else (key.now_us - key.waits_since_us) / 1e6


def _held_s(key: KeySummary) -> float:
    return 0.0 if key.held_since_us is None else (key.now_us - key.held_since_us) / 1e6
