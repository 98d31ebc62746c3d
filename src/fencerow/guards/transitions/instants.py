"""How an instant of the database's clock is written into a column, by the column's type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

PRECISION = re.compile(r"\(\d+\)")
MICROSECONDS = 1_000_000


class ColumnKind(Enum):
    """What a column keeps."""

    ZONED = "timestamp with time zone"
    PLAIN = "timestamp without time zone, UTC"
    TEXT = "text such as 2026-11-21 17:00:00.000000, UTC"
    WHOLE = "a whole number of microseconds since 1970"
    REAL = "seconds since 1970 with a fraction"


POSTGRES = {
    "timestamp with time zone": ColumnKind.ZONED,
    "timestamp without time zone": ColumnKind.PLAIN,
    "bigint": ColumnKind.WHOLE,
    "double precision": ColumnKind.REAL,
}
# SQLite goes by what a declared type contains; the first that fits counts, in SQLite's own order.
SQLITE = (
    ("INT", ColumnKind.WHOLE),
    ("CHAR", ColumnKind.TEXT),
    ("TEXT", ColumnKind.TEXT),
    ("DATE", ColumnKind.TEXT),
    ("TIME", ColumnKind.TEXT),
    ("REAL", ColumnKind.REAL),
    ("FLOA", ColumnKind.REAL),
    ("DOUB", ColumnKind.REAL),
)


@dataclass(frozen=True, slots=True)
class Instants:
    """Writes instants of one kind in one dialect."""

    dialect: str
    kind: ColumnKind

    @staticmethod
    def of(dialect: str, declared_type: str) -> Instants | None:
        """For a column of this type; None if it keeps no instants."""
        if dialect == "postgres":
            kind = POSTGRES.get(PRECISION.sub("", declared_type))
        else:
            upper = declared_type.upper()
            kind = next((kind for part, kind in SQLITE if part in upper), None)
        return None if kind is None else Instants(dialect, kind)

    @staticmethod
    def expected(dialect: str) -> str:
        """The types that may be, for a message."""
        if dialect == "postgres":
            return ", ".join(POSTGRES)
        return "INTEGER (microseconds), TEXT or DATETIME (UTC), REAL (seconds)"

    def now(self, offset_s: float = 0.0) -> str:
        """The database's now, so many seconds later or earlier, as this kind."""
        moment = self._moment(offset_s)
        match self.kind:
            case ColumnKind.ZONED:
                return moment
            case ColumnKind.PLAIN:
                return f"({moment} AT TIME ZONE 'UTC')"
            case ColumnKind.TEXT:
                seconds = f"strftime('%Y-%m-%d %H:%M:%S', {moment} / {MICROSECONDS}, 'unixepoch')"
                return f"({seconds} || printf('.%06d', {moment} % {MICROSECONDS}))"
            case ColumnKind.WHOLE:
                return moment if self.dialect == "sqlite" else f"CAST({_epoch(moment)} * 1000000 AS bigint)"
            case ColumnKind.REAL:
                return (
                    f"({moment} / {MICROSECONDS}.0)"
                    if self.dialect == "sqlite"
                    else f"CAST({_epoch(moment)} AS double precision)"
                )

    def age_s(self, instant: str) -> str:
        """How many seconds ago an instant was."""
        moment = self._moment(0.0)
        match self.kind:
            case ColumnKind.ZONED:
                return _seconds(f"{moment} - {instant}")
            case ColumnKind.PLAIN:
                return _seconds(f"({moment} AT TIME ZONE 'UTC') - {instant}")
            case ColumnKind.TEXT:
                return f"({moment} / {MICROSECONDS}.0 - (julianday({instant}) - 2440587.5) * 86400.0)"
            case ColumnKind.WHOLE | ColumnKind.REAL:
                unit = f" / {MICROSECONDS}.0" if self.kind is ColumnKind.WHOLE else ""
                age = f"({self.now()} - {instant}){unit}"
                return age if self.dialect == "sqlite" else f"CAST({age} AS double precision)"

    def _moment(self, offset_s: float) -> str:
        offset_us = round(offset_s * MICROSECONDS)
        if self.dialect == "sqlite":
            return f"(fencerow.now() + {offset_us})" if offset_us else "fencerow.now()"
        # In a query of its own: being volatile it would be asked for every row, and be no condition of an index.
        now = "(SELECT fencerow.now())"
        return f"({now} + INTERVAL '{offset_us} microseconds')" if offset_us else now


def _epoch(moment: str) -> str:
    return f"extract(epoch FROM {moment})"


def _seconds(interval: str) -> str:
    return f"CAST(extract(epoch FROM {interval}) AS double precision)"
