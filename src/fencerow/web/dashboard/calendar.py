"""The fires of a schedule on a calendar of five weeks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

WEEKS = 5
SHOWN = 6  # marks of a day; where there are more, their number is told


@dataclass(frozen=True, slots=True)
class FireMark:
    """A fire. `state` is that of its job; None: it made none. A coming one is `queued`."""

    at_us: int
    state: str | None
    coming: bool


@dataclass(frozen=True, slots=True)
class Day:
    """A day of UTC with its fires, in order."""

    day: date
    is_today: bool
    marks: list[FireMark] = field(default_factory=list)

    @property
    def shown(self) -> Sequence[FireMark]:
        """The first of them."""
        return self.marks[:SHOWN]

    @property
    def left_out(self) -> int:
        """How many are not among `shown`."""
        return max(0, len(self.marks) - SHOWN)


def calendar_of(marks: Sequence[FireMark], now_us: int) -> list[list[Day]]:
    """Weeks from Monday on: the one before this one, this one, and three more. Fires outside are left out."""
    today = _day(now_us)
    first = today - timedelta(days=today.weekday() + 7)
    days = {each: Day(each, each == today) for each in (first + timedelta(days=n) for n in range(7 * WEEKS))}
    for mark in sorted(marks, key=lambda each: each.at_us):
        if (found := days.get(_day(mark.at_us))) is not None:
            found.marks.append(mark)
    every = list(days.values())
    return [every[at : at + 7] for at in range(0, len(every), 7)]


def _day(us: int) -> date:
    return datetime.fromtimestamp(us // 1_000_000, UTC).date()
