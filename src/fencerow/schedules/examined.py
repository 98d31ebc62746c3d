"""What the doctor asks of schedules, counted by the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.schedules.definition import seed_of

Kind = Literal["trouble", "undeclared", "overdue", "ahead"]


@dataclass(frozen=True, slots=True)
class Notable:
    """A row that the doctor names."""

    kind: str
    full_name: str
    trouble: str
    next_us: int | None


@dataclass(frozen=True, slots=True)
class Examined:
    """How all schedules stand, and the first few of each kind."""

    count: int
    troubled: int
    undeclared: int
    overdue: int
    zones: frozenset[str]
    now_us: int
    notable: list[Notable]

    @property
    def are_there(self) -> bool:
        """Whether there is any."""
        return bool(self.count or self.troubled or self.undeclared)

    def of(self, kind: Kind) -> list[Notable]:
        """The first few of this kind."""
        return [each for each in self.notable if each.kind == kind]


@operation(repeatable=True, writes="")
def examine(*, overdue_s: float, ahead_s: float, limit: int) -> Steps[Examined]:
    """How all schedules stand; of each kind of trouble at most `limit` rows."""
    ((count, troubled, undeclared, overdue, zones, now_us),) = yield from execute(
        "count_schedules", overdue_s=overdue_s
    )
    rows = yield from execute("notable_schedules", overdue_s=overdue_s, ahead_s=ahead_s, limit=limit)
    notable = [
        Notable(str(kind), seed_of(str(name), str(entity)), str(trouble), as_int_or_none(next_us))
        for kind, name, entity, trouble, next_us in rows
    ]
    return Examined(
        as_int(count),
        as_int(troubled),
        as_int(undeclared),
        as_int(overdue),
        frozenset((text_or_none(zones) or "").split(",")) - {""},
        as_int(now_us),
        notable,
    )
