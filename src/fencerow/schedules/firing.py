"""What is due fires. Where one row makes the tick of all fail, each has a tick of its own, and that one says why."""

from __future__ import annotations

from collections.abc import Collection

import fencerow.schedules.ticking as ticking
from fencerow.core.model.job import NewJob
from fencerow.core.store.hints import hints_of
from fencerow.db.run import Operation, Procedure, WakeUp, ask
from fencerow.db.trouble import is_shortage, is_trouble
from fencerow.schedules.ticking import Key, Ticked


def fire_due(besides: Collection[Key]) -> Procedure[Ticked]:
    """One tick, and the wake-ups for its jobs; `besides` are left to others. May be repeated.

    A row whose job cannot be stored is among its troubles. What waiting may help against is raised.
    """
    done, _ = yield from _tried(ticking.tick(besides=besides))
    if done is not None:
        return done
    jobs: list[NewJob] = []
    rows, troubles, refused = 0, dict[Key, str](), dict[Key, str]()
    for key in (yield from ask(ticking.due_keys(besides=besides))):
        one, trouble = yield from _tried(ticking.tick(only=key))
        if one is None:
            one = Ticked(rows=1, troubles={key: trouble})
        jobs += one.jobs
        rows += one.rows
        troubles |= one.troubles
        refused |= one.refused
    return Ticked(jobs, rows, troubles, refused)


def _tried(tick: Operation[Ticked]) -> Procedure[tuple[Ticked | None, str]]:
    """What it came to, or None and why."""
    try:
        done = yield from ask(tick)
    except Exception as error:
        if is_trouble(error) or is_shortage(error):
            raise
        return None, ticking.trouble_of(error)
    if messages := hints_of(done.jobs):
        yield WakeUp(messages)
    return done, ""
