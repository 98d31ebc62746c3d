"""What a worker and a child process say to one another: JSON documents, each behind its length."""

from __future__ import annotations

import struct
from itertools import starmap
from typing import Any

import msgspec

from fencerow.core.model.job import Claimed, KeyClaim, NewJob
from fencerow.core.model.outcome import (
    Failed,
    Followed,
    Released,
    Retried,
    Snoozed,
    Stopped,
    Succeeded,
    Suspended,
)
from fencerow.core.model.submission import Submission
from fencerow.core.worker.attempt import Interrupt
from fencerow.core.worker.deciding import Committed, Decision
from fencerow.processes.origin import HandlerOrigin

LENGTH = struct.Struct("!I")


class Start(msgspec.Struct, frozen=True):
    """The first message: what the child becomes before it imports anything of the user's. Read by `_boot.py`."""

    path: list[str]
    argv: list[str]
    memory_bytes_max: int | None
    config: dict[str, Any]
    levels: dict[str, int]  # of the loggers that have one; "" is the root
    held_max_s: float | None


class RunAttempt(msgspec.Struct, frozen=True, tag="run"):
    """Run this attempt. Its arguments stand beside it as text: whatever somebody stored must not break a message."""

    origin: HandlerOrigin
    claimed: Claimed
    holder: str
    args: str


class EndAttempt(msgspec.Struct, frozen=True, tag="end"):
    """The attempt is asked to end: an exception now."""

    why: Interrupt


class ChildLeave(msgspec.Struct, frozen=True, tag="leave"):
    """There is nothing more to do."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The child of this number has started and waits for an attempt. It leads a group of its own."""

    pid: int


class WireLine(msgspec.Struct, frozen=True, tag="line"):
    """A log record."""

    name: str
    level: int
    message: str
    created: float
    thread: str
    trace: str | None
    extra: dict[str, Any]


class ChildAsked(msgspec.Struct, frozen=True, tag="asked"):
    """The child itself asked its attempt to end: its time is over, or it held a transaction for too long."""

    why: Interrupt


class OutOfMemory(msgspec.Struct, frozen=True, tag="out_of_memory"):
    """The attempt met the memory limit; the child ends."""


class Missing(msgspec.Struct, frozen=True, tag="missing"):
    """The job is not to be found by importing its module; nothing was run."""

    what: str
    why: str
    fix: str


class ToldSubmission(msgspec.Struct, frozen=True):
    """A follow-up, as it travels. One that would have to be packed again does not."""

    job: NewJob
    key: KeyClaim | None
    own_id: bool


class ToldFollowed(msgspec.Struct, frozen=True):
    """A success with its follow-ups, as it travels."""

    result: bytes
    submissions: tuple[ToldSubmission, ...]


class ChildReply(msgspec.Struct, frozen=True, tag="answer"):
    """What became of the attempt, and how much memory the child keeps."""

    kind: str
    body: msgspec.Raw
    resident_bytes: int


ToChild = RunAttempt | EndAttempt | ChildLeave
ToWorker = Ready | WireLine | ChildAsked | OutOfMemory | Missing | ChildReply

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (Succeeded, Failed, Retried, Snoozed, Suspended, Released, Stopped, Committed)
}
_LOST = "Lost"


def framed(message: msgspec.Struct) -> bytes:
    """A message as it travels."""
    body = msgspec.json.encode(message)
    return LENGTH.pack(len(body)) + body


def answer(decision: Decision, resident_bytes: int) -> ChildReply:
    """The message that tells a decision."""
    kind = _LOST if decision is None else type(decision).__name__
    if isinstance(decision, Followed):
        told = [(each.job, each.key, each.own_id) for each in decision.submissions]
        followed = ToldFollowed(decision.result, tuple(starmap(ToldSubmission, told)))
        return ChildReply(kind, msgspec.Raw(msgspec.json.encode(followed)), resident_bytes)
    return ChildReply(kind, msgspec.Raw(msgspec.json.encode(decision)), resident_bytes)


def decision_of(reply: ChildReply) -> Decision:
    """The decision that it tells."""
    if reply.kind == _LOST:
        return None
    if reply.kind == Followed.__name__:
        told = msgspec.json.decode(reply.body, type=ToldFollowed)
        follow = [Submission(each.job, each.key, each.own_id) for each in told.submissions]
        return Followed(told.result, tuple(follow))
    found: Decision = msgspec.json.decode(reply.body, type=_KINDS[reply.kind])
    return found
