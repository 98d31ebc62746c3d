"""What wings keep of one job, in one statement: its flow, its waits, its steps, its signals; and the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fencerow.core.store.decoding import read_or
from fencerow.db.run import Row, Steps, as_int, as_int_or_none, execute, operation, text_or_none

STEPS_SHOWN = 100
NEAR = 20  # of each other kind
BYTES_SHOWN = 16 * 1024  # of one result: what is longer is told by its size


@dataclass(frozen=True, slots=True)
class FlowOfJob:
    """A flow that a job belongs to, is a callback of, or runs within itself. `text`: its name there, or the outcome."""

    id: str
    name: str
    text: str
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A job for which it waits, or that waits for it. `state`: how it ended, as far as it was told."""

    id: str
    name: str
    policy: str
    state: str | None


@dataclass(frozen=True, slots=True)
class WaitShown:
    """What it waits for in its run: a signal, or a time alone."""

    name: str
    signal: str | None
    since_us: int
    until_us: int | None


@dataclass(frozen=True, slots=True)
class StepShown:
    """What it remembers of a step. `data` is None of a result that is too long to be shown, and `has_data` False."""

    name: str
    kind: str
    place: int
    attempt: int
    at_us: int
    took_s: float | None
    data: Any
    has_data: bool
    size: int


@dataclass(frozen=True, slots=True)
class SignalShown:
    """A signal that was sent to it. `taken_as`: the wait that took it."""

    name: str
    sent_by: str | None
    taken_as: str | None
    sent_at_us: int
    data: Any
    has_data: bool
    size: int


@dataclass(slots=True)
class InsideJob:
    """All of it. `open`: of how many of those for which it waits no end was told."""

    now_us: int = 0
    flow: FlowOfJob | None = None
    callback_of: FlowOfJob | None = None
    within: FlowOfJob | None = None
    before: list[Neighbour] = field(default_factory=list)
    behind: list[Neighbour] = field(default_factory=list)
    open: int = 0
    waits: list[WaitShown] = field(default_factory=list)
    steps: list[StepShown] = field(default_factory=list)
    more_steps: bool = False
    signals: list[SignalShown] = field(default_factory=list)

    @property
    def belongs(self) -> bool:
        """Whether it has to do with any flow."""
        return any((self.flow, self.callback_of, self.within))

    @property
    def has_run_steps(self) -> bool:
        """Whether there is anything to tell of steps and signals."""
        return bool(self.steps or self.waits or self.signals)


@operation(alone=True, repeatable=True, writes="")
def inside_job(job_id: str, *, after: int) -> Steps[InsideJob]:
    """What is kept of a job, with its steps behind a place; of a job that is not there the clock alone."""
    rows = yield from execute(
        "inside_job", id=job_id, after=after, near=NEAR, limit=STEPS_SHOWN + 1, bytes=BYTES_SHOWN
    )
    found = InsideJob()
    for row in rows:
        _add(found, row)
    found.before.sort(key=lambda each: each.state is not None)
    found.steps.sort(key=lambda each: (each.place, each.name))
    found.more_steps = len(found.steps) > STEPS_SHOWN
    del found.steps[STEPS_SHOWN:]
    return found


def _add(found: InsideJob, row: Row) -> None:
    match str(row[0]):
        case "clock":
            found.now_us = as_int(row[7])
        case "flow":
            found.flow = FlowOfJob(str(row[1]), str(row[2]), str(row[3]), as_int(row[11]))
        case "callback":
            found.callback_of = FlowOfJob(str(row[1]), str(row[2]), str(row[3]))
        case "within":
            found.within = FlowOfJob(str(row[1]), str(row[2]), "", as_int(row[11]))
        case "before":
            found.before.append(_neighbour(row))
            found.open = as_int(row[11])
        case "behind":
            found.behind.append(_neighbour(row))
        case "wait":
            found.waits.append(
                WaitShown(str(row[2]), text_or_none(row[3]), as_int(row[7]), as_int_or_none(row[8]))
            )
        case "step":
            found.steps.append(_step(row))
        case _:
            found.signals.append(_signal(row))


def _neighbour(row: Row) -> Neighbour:
    return Neighbour(str(row[1]), str(row[2]), str(row[3]), text_or_none(row[4]))


def _step(row: Row) -> StepShown:
    took_s = None if row[9] is None else float(str(row[9]))
    return StepShown(
        str(row[2]), str(row[3]), as_int(row[5]), as_int(row[6]), as_int(row[7]), took_s, *_data(row)
    )


def _signal(row: Row) -> SignalShown:
    return SignalShown(str(row[2]), text_or_none(row[3]), text_or_none(row[4]), as_int(row[7]), *_data(row))


def _data(row: Sequence[Any]) -> tuple[Any, bool, int]:
    text = text_or_none(row[10])
    return read_or(None, Any, text or "null"), text is not None, as_int(row[11])
