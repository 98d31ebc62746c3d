"""What one attempt became. The store turns each into one fenced statement."""

from __future__ import annotations

import msgspec

from fencerow.core.model.describe import ErrorRecord
from fencerow.core.model.submission import Submission


class Succeeded(msgspec.Struct, frozen=True):
    """The handler returned; `result` is the encoded value."""

    result: bytes


class Followed(Succeeded, frozen=True):
    """The handler returned, and these jobs are submitted in the transaction of its success."""

    submissions: tuple[Submission, ...]


class Failed(msgspec.Struct, frozen=True):
    """The job ends here."""

    error: ErrorRecord


class Retried(msgspec.Struct, frozen=True):
    """Another attempt starts `delay_s` seconds after the database's now; one failure is spent."""

    delay_s: float
    error: ErrorRecord


class Snoozed(msgspec.Struct, frozen=True):
    """The job comes back `delay_s` seconds after the database's now; no failure is spent."""

    delay_s: float
    reason: str


class Suspended(msgspec.Struct, frozen=True):
    """The attempt ends, and its job waits for something that a wing knows, until that wakes it; nothing is spent.

    `reason`: what it waits for, for people.
    """

    reason: str


class Released(msgspec.Struct, frozen=True):
    """The worker gives the job back unfinished; no failure is spent. Without a delay it keeps its place."""

    reason: str
    delay_s: float | None = None


class Stopped(msgspec.Struct, frozen=True):
    """A cancel was asked for and the handler stopped."""

    reason: str


class Crashed(msgspec.Struct, frozen=True):
    """The child process that ran the attempt died; the job is due again after `delay_s` if its budget permits."""

    delay_s: float
    reason: str


Outcome = Succeeded | Followed | Failed | Retried | Snoozed | Suspended | Released | Stopped | Crashed
