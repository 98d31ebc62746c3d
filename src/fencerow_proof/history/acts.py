"""What was done, put together from its lines: one act is one verb on one job, with the time in which it happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fencerow_proof.history.line import REFUSED, Kind

NEVER = 1 << 62  # the end of what has none: it may still happen


class Act(msgspec.Struct, gc=False):
    """One verb on one job (or on one holder or key), between `start_us` and `end_us`.

    `info` acts have no end: they may have happened at any time since their start, or never.
    """

    verb: str
    kind: Kind
    start_us: int
    end_us: int
    op: tuple[int, int]  # file and number: equal for what was one transaction
    lines: tuple[int, int]  # of invoke and end in that file; 0 for an end that is missing
    job: str | None = None
    attempt: int | None = None
    holder: str | None = None
    state: str | None = None
    how: str | None = None
    queue: str | None = None
    name: str | None = None
    suspect: bool = False
    new: bool | None = None
    scope: str | None = None
    key: str | None = None
    fingerprint: str | None = None
    exclusive: str | None = None
    exclusive_at_once: int | None = None
    strict: bool = False
    limits: tuple[str, ...] | None = None
    affinity: str | None = None
    limit: int | None = None
    labels: tuple[str, ...] | None = None
    slots: int | None = None
    lease_s: float | None = None
    code: str | None = None
    tries: int = 1

    @property
    def happened(self) -> bool:
        """It was done for certain."""
        return self.kind is Kind.OK

    @property
    def maybe(self) -> bool:
        """It was done or not."""
        return self.kind is Kind.INFO

    @property
    def possible(self) -> bool:
        return self.kind is Kind.OK or self.kind is Kind.INFO

    @property
    def was_refused(self) -> bool:
        """Its guard said no, or another's lock was in the way: nothing was changed."""
        return self.kind is Kind.FAIL and self.code == REFUSED


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a history, and where its process ran."""

    path: Path
    process: str
    boot: str
    wall_minus_mono_us: int
    sweep_s: float | None
    torn: bool


@dataclass(slots=True)
class History:
    """All acts of a run. `slack_us` is how well clocks of different hosts agree; 0 when all ran on one."""

    sources: list[Source] = field(default_factory=list[Source])
    by_job: dict[str, list[Act]] = field(default_factory=dict[str, list[Act]])
    others: list[Act] = field(default_factory=list[Act])  # no job is known: workers, keys, claims of nothing
    slack_us: int = 0
    acts: int = 0

    def add(self, act: Act) -> None:
        self.acts += 1
        if act.job is None:
            self.others.append(act)
        else:
            self.by_job.setdefault(act.job, []).append(act)

    def before(self, one: Act, other: Act) -> bool:
        """Whether `one` was over before `other` began, by clocks that can be compared."""
        return one.end_us + self.slack_us < other.start_us

    def of(self, verb: str) -> Iterator[Act]:
        """The acts of one verb that name no job."""
        return (act for act in self.others if act.verb == verb)

    @property
    def end_us(self) -> int:
        """When the last line was written. Looks at every act."""
        everything = (act for acts in (self.others, *self.by_job.values()) for act in acts)
        return max((act.end_us if act.end_us < NEVER else act.start_us for act in everything), default=0)
