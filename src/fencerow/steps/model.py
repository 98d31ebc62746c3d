"""What is remembered, waited for and sent, as it is read. No I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from fencerow.core.model.job import At, AtOrNone

SIGNAL_LENGTH_MAX: Final = 100


class Kind(StrEnum):
    """What a remembered row is of."""

    STEP = "step"
    SLEEP = "sleep"
    SIGNAL = "signal"
    PATCH = "patch"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a job remembers of one step of its run. `seq`: its place in the order in which the run asked for them.

    `result` is the stored JSON text. `beside`: another was under way when it was asked for. `took_s`: how long it ran.
    """

    name: str
    kind: Kind
    seq: int
    result: str
    beside: bool = False
    attempt: int = 0
    at_us: int = 0
    took_s: float | None = None

    at = At("at_us")


class JobWait(msgspec.Struct, frozen=True, kw_only=True):
    """What a suspended job waits for: a signal, or a time alone. Instants are microseconds by the database's clock."""

    job_id: str
    name: str
    queue: str
    wait: str
    signal: str | None
    until_us: int | None
    since_us: int
    now_us: int

    until = AtOrNone("until_us")
    since = At("since_us")
    now = At("now_us")


class SentSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that was sent to a job. `taken_as`: the wait that took it; None: nobody has."""

    id: str
    name: str
    data: Any
    sent_by: str | None
    sent_at_us: int
    taken_as: str | None

    sent_at = At("sent_at_us")
