"""How much work a provider is, and for how many of them the workers suffice: five lines of arithmetic.

A probe of a kind runs `rate` times in an hour for at most so many minutes. As one provider has one probe at a time, an
hour has 60 minutes for all of its kinds together, however many workers there are.
"""

from __future__ import annotations

from collections.abc import Mapping


def load_minutes(rates: Mapping[str, float], minutes: Mapping[str, float]) -> float:
    """Minutes of work in an hour at one provider."""
    return sum(rate * minutes[kind] for kind, rate in rates.items())


def headroom_minutes(load: float) -> float:
    """Minutes in an hour in which it catches up; none: it never does."""
    return max(0.0, 60 - load)


def providers_max(slots: int, load: float) -> int:
    """For how many providers so many slots suffice, each of the load."""
    return int(slots * 60 / load)


def drain_s(backlog_s: float, load: float) -> float:
    """How long a provider needs for a backlog of so many seconds of work, while new work goes on coming."""
    return backlog_s / (1 - load / 60)
