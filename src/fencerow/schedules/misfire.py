"""What to do about the fires that nobody made: workers were down, the schedule was paused, the database was away.

A fire that is late by no more than the grace was only waited for; it is made under every policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from fencerow.schedules.spec import Spec
from fencerow.schedules.windows import MaintenanceWindows

NO_WINDOWS = MaintenanceWindows()
LOOKED_BACK_MAX = 100  # windows one behind the other, each with a fire in it; then that one's tick says so
COUNTED_MAX = 100  # each is computed: it costs up to half a millisecond


class Misfire(StrEnum):
    """`skip` leaves missed fires out, `one` makes the latest of them, `all` makes each, so many in one pass."""

    SKIP = "skip"
    ONE = "one"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class DueFires:
    """`fires` are made now, oldest first. `next_us` is what the schedule waits for: later than every fire, and not
    yet later than now where a pass was full. `left_out`: missed for good, counted up to 100."""

    fires: tuple[int, ...]
    next_us: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Catching:
    """How one schedule catches up. `grace_us`: how late a fire may be without being missed."""

    misfire: Misfire
    at_most: int
    grace_us: int = 0


def due(
    spec: Spec,
    seed: str,
    next_us: int,
    now_us: int,
    catching: Catching,
    skipped: MaintenanceWindows = NO_WINDOWS,
) -> DueFires:
    """Which of the fires from `next_us` to `now_us` are made, and what comes next. Nothing before its time.

    `skipped`: windows in which a fire makes no job; of those that were missed, one outside them is made up.
    """
    if next_us > now_us:
        return DueFires((), next_us, 0)
    match catching.misfire:
        case Misfire.ALL:
            return _all(spec, seed, next_us, now_us, catching.at_most)
        case Misfire.ONE:
            return _latest(spec, seed, next_us, now_us, skipped)
        case Misfire.SKIP:
            return _in_time(spec, seed, next_us, now_us, catching)
        case _:
            assert_never(catching.misfire)


def _all(spec: Spec, seed: str, next_us: int, now_us: int, at_most: int) -> DueFires:
    fires = _fires(spec, seed, next_us, now_us, at_most)
    return DueFires(fires, spec.next_after(fires[-1], seed), 0)


def _latest(spec: Spec, seed: str, next_us: int, now_us: int, skipped: MaintenanceWindows) -> DueFires:
    """The stored `next_us` is due even where the specification has changed and it is no fire any more."""
    last = max(next_us, spec.last_until(now_us, seed))
    for _ in range(LOOKED_BACK_MAX):
        if not skipped.closed(last):
            break
        before_us = spec.last_until(skipped.closed_since(last) - 1, seed)
        if before_us <= next_us:
            last = next_us if not skipped.closed(next_us) else last
            break
        last = before_us
    missed = 0 if last == next_us else 1 + len(spec.fires(next_us, last - 1, seed, COUNTED_MAX - 1))
    return DueFires((last,), spec.next_after(now_us, seed), missed)


def _in_time(spec: Spec, seed: str, next_us: int, now_us: int, catching: Catching) -> DueFires:
    """Late by more than the grace: left out. The rest is made, but no more in one pass than the cap."""
    since = max(next_us, now_us - catching.grace_us)
    missed = 0 if since == next_us else 1 + len(spec.fires(next_us, since - 1, seed, COUNTED_MAX - 1))
    if since > next_us:
        since = spec.next_after(since - 1, seed)
    if since > now_us:
        return DueFires((), since, missed)
    fires = _fires(spec, seed, since, now_us, catching.at_most)
    return DueFires(fires, spec.next_after(fires[-1], seed), missed)


def _fires(spec: Spec, seed: str, next_us: int, now_us: int, at_most: int) -> tuple[int, ...]:
    """The stored fire, and those of the specification behind it."""
    return (next_us, *spec.fires(next_us, now_us, seed, at_most - 1))
