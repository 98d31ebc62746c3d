"""What one attempt became. The store turns each into one fenced statement."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.model.describe import ErrorRecord


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; `result` is the encoded value."""

    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The job ends here."""

    error: ErrorRecord


@dataclass(frozen=True, slots=True)
class Retried:
    """Another attempt starts `delay_s` seconds after the database's now; one failure is spent."""

    delay_s: float
    error: ErrorRecord


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The job comes back `delay_s` seconds after the database's now; no failure is spent."""

    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Released:
    """The worker gives the job back unfinished; no failure is spent. Without a delay it keeps its place."""

    reason: str
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """A cancel was asked for and the handler stopped."""

    reason: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """The child process that ran the attempt died; the job is due again after `delay_s` if its budget permits."""

    delay_s: float
    reason: str


Outcome = Succeeded | Failed | Retried | Snoozed | Released | Stopped | Crashed
