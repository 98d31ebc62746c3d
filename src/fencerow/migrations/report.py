"""What a migrator did, or would do, on each shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fencerow.core.errors import FencerowError


class Outcome(StrEnum):
    """The state of a shard after a run, or now."""

    DONE = "done"  # nothing is left of what was asked for
    PENDING = "pending"  # migrations are left to run; only in a plan or a status
    FAILED = "failed"  # a migration raised, or the ledger or the files forbid to go on
    BUSY = "busy"  # somebody else is at work there
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class ShardReport:
    """One shard. `ran` are the migrations of this run, `left` those that it did not do; `at` the newest
    complete one."""

    shard: str
    outcome: Outcome
    at: int | None = None
    ran: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()  # what newer code ran there
    begun: str | None = None  # a migration outside of a transaction that is under way, or was cut off
    error: FencerowError | None = None
    took_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain data for a program."""
        return {
            "shard": self.shard,
            "outcome": self.outcome.value,
            "at": self.at,
            "ran": list(self.ran),
            "left": list(self.left),
            "ahead": list(self.ahead),
            "started": self.begun,
            "error": None
            if self.error is None
            else dict(zip(("what", "why", "fix"), self.error.lines(), strict=True)),
            "took_s": round(self.took_s, 3),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All shards that were asked for, in the order in which they were declared."""

    shards: tuple[ShardReport, ...]

    def __getitem__(self, name: str) -> ShardReport:
        return next(report for report in self.shards if report.shard == name)

    @property
    def failed(self) -> Sequence[ShardReport]:
        """The shards on which it failed; a second run does what is left there."""
        return [report for report in self.shards if report.outcome not in (Outcome.DONE, Outcome.PENDING)]

    @property
    def ok(self) -> bool:
        """Whether it was done, or could be, on every shard."""
        return not self.failed

    def raise_failed(self) -> None:
        """Raise the error of the first shard that has one; notes name the others.

        Raises:
            FencerowError: what happened there.
        """
        errors = [(report.shard, report.error) for report in self.failed if report.error is not None]
        if errors:
            shard, first = errors[0]
            first.add_note(f"on shard {shard}")
            for name, other in errors[1:]:
                first.add_note(f"and on shard {name}: {other}")
            raise first
