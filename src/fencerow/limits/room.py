"""How many jobs may start under a limit: its numbers, what is remembered of it, and what holds it now. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from fencerow.limits.breaking import BreakerState
from fencerow.limits.definition import Limit
from fencerow.limits.hours import open_until


class LimitState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered of a limit, or of one of its keys. A new one is as good as one that was idle for long.

    `tat_us`: when its bucket is full again. `breaker`: which failures count, and whether it stops.
    """

    tat_us: int = 0
    breaker: BreakerState = BreakerState()


@dataclass(frozen=True, slots=True)
class StartRoom:
    """How many jobs may start, and when.

    `starts_us`: an instant for each, now or a little ahead. `again_us`: when there is more, if time brings it; an end
    may bring it sooner. `why`: what keeps others from starting, for people.
    """

    starts_us: tuple[int, ...]
    again_us: int | None = None
    why: str = ""


def room_now(limit: Limit, state: LimitState, now_us: int, *, held: int, wanted: int) -> StartRoom:
    """StartRoom for jobs that are claimed at once, so that each starts now. `held`: how many run."""
    is_open, changes_us = open_until(limit.openings, now_us) if limit.hours else (True, None)
    if not is_open:
        return StartRoom((), changes_us, "closed at this hour")
    room, why = wanted, ""
    if limit.slots is not None and limit.slots - held < room:
        room, why = max(0, limit.slots - held), f"{held} of {limit.slots} run"
    again_us = None
    if limit.rate is not None:
        pace = limit.rate.pace
        starts = pace.starts_us(state.tat_us, now_us, until_us=now_us, at_most=room)
        if len(starts) < room:
            room, why = len(starts), f"the rate is {limit.rate}"
            again_us = pace.start_us(state.tat_us, now_us, room)
    return StartRoom((now_us,) * room, again_us, why)


def after_starts(limit: Limit, state: LimitState, now_us: int, count: int) -> LimitState:
    """What is remembered after so many starts."""
    if not count:
        return state
    if limit.rate is not None:
        state = msgspec.structs.replace(state, tat_us=limit.rate.pace.taken(state.tat_us, now_us, count))
    if limit.breaker is not None:
        started = limit.breaker.breaking.started(state.breaker, count)
        state = msgspec.structs.replace(state, breaker=started)
    return state
