"""Instants for people: how long ago or ahead by the database's clock, or exact in UTC; and lengths of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import moment

UNITS = ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (120, 60, "min"), (0, 1, "s"))


@dataclass(frozen=True, slots=True)
class Times:
    """What the database's clock says now, and whether a person asked for exact times (--utc)."""

    now_us: int
    utc: bool = False

    def when(self, us: int | None) -> str | None:
        """For a table: `3 s ago`, `in 2 min`; with --utc the instant, to the second."""
        if us is None:
            return None
        return exact(us) if self.utc else self._relative(us)

    def fine(self, us: int | None) -> str | None:
        """For what lies close together, such as a timeline: with --utc to the millisecond."""
        if us is None:
            return None
        return exact(us, "milliseconds") if self.utc else self._relative(us)

    def full(self, us: int | None) -> str | None:
        """For a line of its own: both; with --utc the instant alone, to the millisecond."""
        if us is None:
            return None
        return exact(us, "milliseconds") if self.utc else f"{exact(us)} ({self._relative(us)})"

    def _relative(self, us: int) -> str:
        seconds = round((us - self.now_us) / 1e6)
        if seconds == 0:
            return "now"
        size = abs(seconds)
        unit = next(each for each in UNITS if size >= each[0])
        text = f"{round(size / unit[1])} {unit[2]}"
        return f"in {text}" if seconds > 0 else f"{text} ago"


def exact(us: int, precision: str = "seconds") -> str:
    """An instant of the database in UTC, as ISO 8601 writes it."""
    return moment(us).astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def iso(us: int | None) -> str | None:
    """The same for programs: to the microsecond, which is all that the database has."""
    return None if us is None else exact(us, "microseconds")


def told_instant(option: str, text: str) -> datetime:
    """What a person wrote for an option that takes an instant.

    Raises:
        InvalidInput: it is none, or has no zone.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.utcoffset() is None:
        raise InvalidInput(
            f"{option} is {ascii(text)[:60]}",
            "a date and a time with its zone are expected, as ISO 8601",
            "for example 2026-12-24T18:00+01:00, or 2026-12-24T17:00Z",
        )
    return found


def span(seconds: float) -> str:
    """A length of time for people: the two largest units, as in `2 h 5 min`, or one where the second is nothing."""
    sign, rest = ("-" if seconds < 0 else ""), abs(seconds)
    if rest < 10:
        return f"{sign}{rest:.1f} s"
    whole = round(rest)
    for unit, below, size, small in (("d", "h", 86_400, 3_600), ("h", "min", 3_600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            less = whole % size // small
            return f"{sign}{whole // size} {unit}" + (f" {less} {below}" if less else "")
    return f"{sign}{whole} s"
