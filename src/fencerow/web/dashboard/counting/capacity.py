"""What comes and what it takes, by queue and name, from looks at the newest rows."""

from __future__ import annotations

import msgspec

from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation

LOOKED_MAX = 10_000  # rows of each look
NAMES_MAX = 300


class ComingJobs(msgspec.Struct, frozen=True):
    """How many jobs of a queue and name were submitted; `looked`: of how many, and `first_us` when their first was."""

    queue: str
    name: str
    jobs: int
    looked: int
    first_us: int | None
    now_us: int


class Took(msgspec.Struct, frozen=True):
    """What jobs of a queue and name took that ended: their last attempt, from its claim on."""

    queue: str
    name: str
    jobs: int
    failures: int
    succeeded: int
    mean_s: float
    p95_s: float

    @property
    def failure_share(self) -> float:
        """Which share of all attempts failed."""
        attempts = self.failures + self.succeeded
        return self.failures / attempts if attempts else 0.0


@operation(alone=True, repeatable=True, writes="")
def came(lowest_id: str) -> Steps[list[ComingJobs]]:
    """Submits from this id on, the newest `LOOKED_MAX`; the most frequent names."""
    rows = yield from execute("came_by_name", lowest=lowest_id, limit=LOOKED_MAX, names=NAMES_MAX)
    return [
        ComingJobs(
            str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), as_int_or_none(row[4]), as_int(row[5])
        )
        for row in rows
    ]


@operation(alone=True, repeatable=True, writes="")
def took(age_s: float) -> Steps[list[Took]]:
    """Jobs that ended within so many seconds, the newest `LOOKED_MAX` of each final state; the most frequent names."""
    rows = yield from execute("took_by_name", age_s=age_s, limit=LOOKED_MAX, names=NAMES_MAX)
    return [
        Took(
            str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), as_int(row[4]),
            float(str(row[5])) / 1e6, float(str(row[6])) / 1e6,
        )
        for row in rows
    ]  # fmt: skip
