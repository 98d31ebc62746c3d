"""Capacity by closed formulas: load, headroom, and for how many entities so many slots suffice. No I/O.

Load is minutes of work in an hour. One slot, or one key whose jobs run one at a time, does at most 60 of them.
Numbers are exact: 0.1 is a tenth, and a rate of "once in 24 hours" is `Fraction(1, 24)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

Number = int | float | Fraction

HOUR_MINUTES: Final = 60


def exact(value: Number) -> Fraction:
    """The number as it was written: 0.1 is a tenth."""
    return value if isinstance(value, Fraction) else Fraction(str(value))


def load_minutes(rates: Mapping[str, Number], minutes: Mapping[str, Number]) -> Fraction:
    """Minutes of work in an hour: the sum of `rate * minutes` over all kinds of jobs.

    `rates`: how often in an hour, by kind. `minutes`: how long one takes; the p95 or the most, to be careful.
    """
    return sum((exact(rate) * exact(minutes[kind]) for kind, rate in rates.items()), Fraction())


def headroom_minutes(load: Number, slots: Number = 1) -> Fraction:
    """Minutes in an hour that are left to catch up with a backlog. 0: it never catches up."""
    return max(Fraction(), HOUR_MINUTES * exact(slots) - exact(load))


def capacity_per_hour(slots: Number, minutes: Number) -> Fraction:
    """How many jobs of so many minutes these slots do in an hour."""
    return exact(slots) * HOUR_MINUTES / exact(minutes)


def entities_max(slots: Number, load: Number, *, besides: Number = 0) -> int:
    """For how many entities these slots suffice, each of this load. `besides`: the load of everything else."""
    return fit_max(HOUR_MINUTES * exact(slots), exact(load), exact(besides))


def slots_needed(load: Number) -> int:
    """The fewest slots that do this load. Where it fills them to the last minute, they never catch up."""
    return math.ceil(exact(load) / HOUR_MINUTES)


def drain_minutes(backlog: Number, load: Number, slots: Number = 1) -> Fraction | None:
    """How long a backlog of so many minutes of work lasts while new work goes on coming; None: for ever."""
    hours = drain_hours(exact(backlog), exact(load), HOUR_MINUTES * exact(slots))
    return None if hours is None else hours * HOUR_MINUTES


def attempts_mean(failure_share: Number, attempts_max: int) -> Fraction:
    """How many attempts a job takes in the mean, if each of them fails with this share, and so many may be made."""
    share = exact(failure_share)
    return sum((share**failures for failures in range(attempts_max)), Fraction())


def fit_max(room: Fraction, each: Fraction, besides: Fraction = Fraction()) -> int:
    """How many of this size fit into what `besides` leaves of the room, all in one unit."""
    return max(0, math.floor((room - besides) / each))


def drain_hours(backlog: Fraction, load: Fraction, room: Fraction) -> Fraction | None:
    """How long a backlog lasts if `load` is added in an hour and `room` can be done in it; None: for ever."""
    if not backlog:
        return Fraction()
    return backlog / (room - load) if room > load else None
