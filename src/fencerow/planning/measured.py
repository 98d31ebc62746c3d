"""What the jobs of a database took that have ended, and how often they came: what a plan leaves out, filled in.

It reads at most `ROWS_MAX` rows of each final state, the newest, by an index, in one statement that only looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation
from fencerow.planning.errors import NothingMeasured
from fencerow.planning.reading import ONE_RATE
from fencerow.planning.written import WrittenJob, WrittenPlan

ROWS_MAX = 10_000
P95 = 0.95


@dataclass(slots=True)
class MeasuredJob:
    """The jobs of one name that were looked at. `durations_s`: of their last attempts, from the claim on."""

    durations_s: list[float] = field(default_factory=list)
    failures: int = 0
    succeeded: int = 0
    jobs: int = 0

    def count(self, failures: int, succeeded: bool, took_us: int | None) -> None:
        """One more of them."""
        self.jobs += 1
        self.failures += failures
        self.succeeded += succeeded
        if took_us is not None:
            self.durations_s.append(max(took_us, 1) / 1e6)

    @property
    def mean_s(self) -> float:
        """Of an attempt."""
        return sum(self.durations_s) / len(self.durations_s)

    def at_share_s(self, share: float) -> float:
        """What so large a share of the attempts took at most: 0.95 is the p95."""
        return sorted(self.durations_s)[math.ceil(share * len(self.durations_s)) - 1]

    @property
    def failure_share(self) -> float:
        """Which share of all attempts failed."""
        attempts = self.failures + self.succeeded
        return self.failures / attempts if attempts else 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """All names that were looked at, over so long a time until now."""

    jobs: dict[str, MeasuredJob]
    span_s: float


@operation(alone=True, repeatable=True, writes="")
def measure(limit: int = ROWS_MAX) -> Steps[Measured]:
    """Look at the newest jobs that have ended. It changes nothing, and may be repeated."""
    return _measured((yield from execute("ended_jobs", limit=limit)), limit)


def _measured(rows: Sequence[Sequence[object]], limit: int) -> Measured:
    """Where more ended than were looked at, only the time counts in which all were."""
    newest_us = min((as_int(row[4]) for row in rows), default=0)
    now_us = min(0, newest_us)  # the clock may have gone back since
    ages = {
        state: [as_int(row[4]) - now_us for row in rows if bool(row[2]) is state] for state in (True, False)
    }
    full = [max(found) for found in ages.values() if len(found) >= limit]
    span_us = min(full) if full else max((age for found in ages.values() for age in found), default=0)
    jobs: dict[str, MeasuredJob] = {}
    for name, failures, succeeded, took_us, age_us in rows:
        if as_int(age_us) - now_us <= span_us:
            found = jobs.setdefault(str(name), MeasuredJob())
            found.count(as_int(failures), bool(succeeded), as_int_or_none(took_us))
    return Measured(jobs, span_us / 1e6)


def filled_in(written: WrittenPlan, measured: Measured) -> WrittenPlan:
    """The plan, with what was measured where a job says nothing: its duration, its rate, its failures.

    Raises:
        NothingMeasured: no job of a name has ended that is to be filled in, or all of them at the same instant.
    """
    jobs = {name: _filled(written, name, each, measured) for name, each in written.jobs.items()}
    return msgspec.structs.replace(written, jobs=jobs)


def _filled(written: WrittenPlan, name: str, job: WrittenJob, measured: Measured) -> WrittenJob:
    no_duration = job.duration_s is None and job.mean_s is None and job.p95_s is None
    no_rate = all(getattr(job, each) is None for each in ONE_RATE)
    if not no_duration and not no_rate:
        return job
    found = measured.jobs.get(name)
    if found is None or not found.durations_s:
        raise NothingMeasured(
            f"no job {ascii(name)[1:-1][:100]} was among the newest that have ended",
            f"{ROWS_MAX} of each final state are looked at; ephemeral jobs leave no row",
            "write its rate and duration into the plan, or correct its name",
        )
    more: dict[str, object] = {}
    if no_duration:
        mean_s, p95_s = found.mean_s, found.at_share_s(P95)
        more |= {"mean_s": round(mean_s, 6), "p95_s": round(max(p95_s, mean_s), 6)}
        more["failure_share"] = job.failure_share or round(min(found.failure_share, 0.99), 6)
    if no_rate:
        more["arrivals"] = _arrivals(written, name, job, found.jobs, measured.span_s)
    return msgspec.structs.replace(job, **more)


def _arrivals(written: WrittenPlan, name: str, job: WrittenJob, jobs: int, span_s: float) -> str:
    """Of one entity, in a time as it is written; all entities submit equally many."""
    if span_s <= 0:
        raise NothingMeasured(
            f"the jobs {ascii(name)[1:-1][:100]} ended at one instant",
            "how often they come is counted over the time since the oldest one",
            "write its rate into the plan",
        )
    group = written.keys.get(job.key) if job.key is not None else None
    rate = jobs / span_s * 3600 / (group.entities if group is not None and group.entities > 0 else 1)
    return f"{rate:.9f}/h"
