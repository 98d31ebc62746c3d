"""Mutexes that are held: by whom, and whether those still live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import fencerow.guards.mutex.mutexes as mutexes
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, info, ok, warn
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.guards.mutex.mutexes import MutexRecord

SHOWN_MAX = 5


def examine_mutexes(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many are held; those past their time; those of attempts that are over."""
    held = engine.run(mutexes.held())
    live = [each for each in held if not each.is_stale]
    if live:
        longest_s = (live[0].now_us - live[0].since_us) / 1e6
        yield ok("mutexes", f"{len(live)} held, {live[0].key} the longest: for {longest_s:.0f} s")
    elif not held:
        yield ok("mutexes", "none is held")
    yield from _stale([each for each in held if each.is_stale])
    yield from _over(engine, live)


def _stale(stale: Sequence[MutexRecord]) -> Iterator[Finding]:
    for each in stale[:SHOWN_MAX]:
        yield info(
            "stale mutex",
            f"{each.key} was not released: process {each.pid} on {each.host} let its lease run out "
            f"{(each.now_us - each.until_us) / 1e6:.0f} s ago; the next caller gets it",
        )


def _over(engine: Engine, live: Sequence[MutexRecord]) -> Iterator[Finding]:
    """Held for an attempt that is none any more: nobody will renew it, and it goes stale by itself."""
    ids = sorted({each.job_id for each in live if each.job_id is not None})
    fences = engine.run(store.read_fences(ids)) if ids else {}
    shown = 0
    for each in live:
        if each.job_id is None or shown == SHOWN_MAX:
            continue
        fence = fences.get(each.job_id)
        if fence is None or fence.state is not State.RUNNING or fence.attempt != each.attempt:
            shown += 1
            yield warn(
                "mutex of the dead",
                f"{each.key} is held for attempt {each.attempt} of {each.job_name} {each.job_id}, which is over",
                f"it becomes stale by itself; `fencerow mutexes release` frees it now: first check that process "
                f"{each.pid} on {each.host} does no work under it",
            )
