"""How many jobs may start under a limit: its numbers, what is remembered of it, and what holds it now. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from fencerow.limits.breaking import CLOSED, BreakerState, FailedAttempt, started
from fencerow.limits.definition import Limit
from fencerow.limits.hours import open_until
from fencerow.limits.pacing import CATCH_UP_US
from fencerow.turns.limiting import Held


class LimitState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered of a limit, or of one of its keys. A new one is as good as one that was idle for long.

    `tat_us`: when its bucket is full again. `breaker`: which failures count, and whether it stops. `last`: the job that
    got the last turn of a strict rate, until it was seen to start. `owed`: the rate kept somebody waiting at the last
    look, so that the next one makes up for what it is late.
    """

    tat_us: int = 0
    breaker: BreakerState = CLOSED
    last: str = ""
    owed: bool = False

    @property
    def watched(self) -> tuple[str, ...]:
        """The jobs whose fate is to be looked at before anything else may start."""
        return (*self.breaker.trials, self.last) if self.last else self.breaker.trials

    def is_as_new(self, now_us: int) -> bool:
        """Whether to forget it changes nothing: the bucket is full, the breaker knows of no failure, and no start is
        waited for."""
        full_us = self.tat_us + (CATCH_UP_US if self.owed else 0)
        return full_us <= now_us and self.breaker.is_as_new and not self.last


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a job that had a turn. `holds`: it has it still. `started_us`: when it started, if it did."""

    holds: bool
    succeeded: bool
    started_us: int | None


@dataclass(frozen=True, slots=True)
class StartRoom:
    """How many jobs may start now.

    `again_us`: when there is more, if time brings it; an end may bring it sooner. `why`: what keeps others from
    starting, for people.
    """

    count: int
    again_us: int | None = None
    why: str = ""


def after_look(
    limit: Limit,
    state: LimitState,
    now_us: int,
    *,
    failed: Sequence[FailedAttempt],
    fates: Mapping[str, Fate],
) -> LimitState:
    """What is remembered after it was looked what became of its jobs. `failed`: the failures that were told."""
    tat_us, last = state.tat_us, ""
    if limit.rate is not None:
        pace = limit.rate.pace
        fate = fates.get(state.last)
        if limit.rate.strict and fate is not None:
            if fate.started_us is not None:
                tat_us = fate.started_us + pace.interval_us
            elif fate.holds:
                last = state.last
        tat_us = pace.bounded(tat_us, now_us)
    breaker = CLOSED
    if limit.breaker is not None:
        breaker = limit.breaker.breaking.seen(
            state.breaker,
            now_us,
            failed=failed,
            trying={job_id for job_id, fate in fates.items() if fate.holds},
            succeeded=any(fates[each].succeeded for each in state.breaker.trials if each in fates),
        )
    return LimitState(tat_us, breaker, last, state.owed)


def room_now(limit: Limit, state: LimitState, now_us: int, held: Held, *, wanted: int) -> StartRoom:
    """The room for as many as are wanted. `held`: those that run, or have a turn.

    No slot, and only an end makes room: `again_us` says nothing. No token, or as many turns that nobody has started as
    a rate may have: time tells.
    """
    is_open, changes_us = open_until(limit.openings, now_us) if limit.hours else (True, None)
    if not is_open:
        return StartRoom(0, changes_us, "closed at this hour")
    room, why = wanted, ""
    if limit.breaker is not None:
        trials = limit.breaker.breaking.room(state.breaker, now_us)
        if state.breaker.is_open(now_us):
            return StartRoom(0, state.breaker.open_until_us, f"its breaker is open: {limit.breaker}")
        if trials is not None and trials < room:
            room, why = trials, f"its breaker lets {limit.breaker.trials} try"
    if limit.at_once is not None and limit.at_once - held.taken < room:
        room, why = max(0, limit.at_once - held.taken), f"{held.taken} of {limit.at_once} run"
    again_us = None
    if limit.rate is not None:
        pace = limit.rate.pace
        starts = 0 if state.last else pace.room(state.tat_us, now_us, at_most=room, owed=state.owed)
        if starts < room:
            room, why = starts, f"the rate is {limit.rate}"
            again_us = now_us + pace.interval_us
            if not state.last:
                next_us = pace.start_us(state.tat_us, now_us, room, owed=state.owed)
                again_us = pace.look_us(next_us, now_us)
        unclaimed = held.unclaimed if not limit.rate.strict else None
        if unclaimed is not None and pace.unclaimed_max - unclaimed < room:
            room, why = (
                max(0, pace.unclaimed_max - unclaimed),
                f"{unclaimed} have a turn and have not started",
            )
            again_us = pace.claimed_us(now_us)
    return StartRoom(room, again_us, why)


def after_starts(
    limit: Limit, state: LimitState, now_us: int, ids: Sequence[str], waits: bool | None = None
) -> LimitState:
    """What is remembered after these jobs got their turn. `waits`: whether somebody is left who is due; None: nobody
    looked."""
    tat_us, last, owed = state.tat_us, state.last, state.owed
    if limit.rate is not None:
        pace = limit.rate.pace
        if ids:
            tat_us = pace.taken(tat_us, now_us, len(ids), owed=state.owed)
            last = ids[-1] if limit.rate.strict else ""
        if waits is not None:
            empty = pace.room(tat_us, now_us, at_most=1, owed=state.owed) == 0
            owed = waits and (empty or state.owed) and not limit.rate.strict
    return LimitState(tat_us, started(state.breaker, ids), last, owed)
