"""The documents of a job's steps and of the signals that are sent to it. See docs/guide/steps.md."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from fencerow.web.gateway.shapes import Given, Instant, Told

StepKind = Literal["step", "sleep", "signal", "patch"]
StepName = Annotated[str, Meta(min_length=1, max_length=220)]


class StepSummary(Told, frozen=True):
    """What a job remembers of one step of its run. `seq`: its place in the order in which the run asked for them."""

    name: str
    kind: StepKind
    seq: int
    attempt: int
    at: Instant
    took_s: float | None


class StepDocument(StepSummary, frozen=True):
    """The same with its result, as JSON; of a signal that was waited for in `data`."""

    result: Any


class WaitDocument(Told, frozen=True):
    """What a suspended job waits for: a signal, or a time alone, until an instant."""

    wait: str
    signal: str | None
    until: Instant | None
    since: Instant


class StepList(Told, frozen=True):
    """What a job remembers, in the order in which its run asked for it, and what it waits for now."""

    id: str
    steps: list[StepSummary]
    waits: list[WaitDocument]


class SignalDocument(Told, frozen=True):
    """A signal that was sent to a job, without its data. `taken_as`: the wait that took it; null: none has."""

    id: str
    name: str
    sent_by: str | None
    sent_at: Instant
    taken_as: str | None


class SignalList(Told, frozen=True):
    """The signals that were sent to a job, in order."""

    id: str
    signals: list[SignalDocument]


class SignalGiven(Given, frozen=True):
    """What is said to the job: JSON of at most 64 KiB."""

    data: Any = None


class SignalSent(Told, frozen=True):
    """The signal is kept until the job takes it. `woken`: the job waited for it, and is queued."""

    id: str
    job_id: str
    woken: bool


class ReviveFrom(Given, frozen=True):
    """The first step that is done anew."""

    step: StepName


class RevivedFrom(Told, frozen=True):
    """The job is queued again; it does anew what it has `forgotten`."""

    id: str
    forgotten: list[str]
