"""What processes tell one another through wake-ups: work is there, jobs have ended, somebody asks.

A wake-up is a hint: it may be lost or come twice, and a newer Fencerow may send kinds that this one does
not know. Whoever hears it looks for himself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

# PostgreSQL takes 8,000 bytes in one notification; an id takes 39 of them in JSON.
IDS_MAX = 150


class Queued(
    msgspec.Struct,
    frozen=True,
    tag_field="k",
    tag="queued",
    rename={"queue": "q", "priority": "p", "run_at_us": "t", "lane": "l"},
    omit_defaults=True,
):
    """Jobs were queued in the lane of this priority and name, the first of them due at `run_at_us`; None: as they were
    stored, just now. Those of all shares are one."""

    queue: str
    priority: int
    run_at_us: int | None = None
    lane: str = ""


class JobsEnded(
    msgspec.Struct,
    frozen=True,
    tag_field="k",
    tag="ended",
    rename={"succeeded": "s"},
    omit_defaults=True,
):
    """Jobs that somebody waits for have ended. `succeeded`: all of them, and well; else it is not said how."""

    ids: tuple[str, ...]
    succeeded: bool = False


class CancelAsked(
    msgspec.Struct, frozen=True, tag_field="k", tag="cancel", rename={"holder": "h", "job_id": "id"}
):
    """The cancel of a job that this holder runs was asked."""

    holder: str
    job_id: str


class Ordered(msgspec.Struct, frozen=True, tag_field="k", tag="ordered", rename={"holder": "h"}):
    """Somebody changed what this worker shall do."""

    holder: str


class Arrived(msgspec.Struct, frozen=True, tag_field="k", tag="arrived"):
    """Jobs came to gates where they wait for their turn, or turns became free there."""


class Published(msgspec.Struct, frozen=True, tag_field="k", tag="published"):
    """Events were published, and have no position yet."""


class Placed(msgspec.Struct, frozen=True, tag_field="k", tag="placed"):
    """Events can be read, or read again."""


class Rescheduled(msgspec.Struct, frozen=True, tag_field="k", tag="rescheduled"):
    """A schedule was made or changed: its next fire may be earlier than workers think."""


class HandoverFree(msgspec.Struct, frozen=True, tag_field="k", tag="handover"):
    """A handover was confirmed or released: another one of its line may be taken."""


class FlowMoved(msgspec.Struct, frozen=True, tag_field="k", tag="flow"):
    """A flow was submitted, cancelled or run again: jobs of it may be there to wake."""


WakeUp = (
    Queued
    | JobsEnded
    | CancelAsked
    | Ordered
    | Arrived
    | Published
    | Placed
    | Rescheduled
    | HandoverFree
    | FlowMoved
)

_decoder: msgspec.json.Decoder[WakeUp] = msgspec.json.Decoder(WakeUp)


def encode(message: WakeUp) -> str:
    """The text to send. Pass many ended ids through `encode_ended`, which keeps each text short enough."""
    return msgspec.json.encode(message).decode()


def encode_ended(ids: Iterable[str], *, succeeded: bool = False) -> list[str]:
    """The texts that announce these ends, each below the size that PostgreSQL takes."""
    known = tuple(ids)
    return [encode(JobsEnded(known[at : at + IDS_MAX], succeeded)) for at in range(0, len(known), IDS_MAX)]


@lru_cache(maxsize=16)  # several listeners of a process hear the same text, one right after the other
def decode(text: str) -> WakeUp | None:
    """The message, or None for a kind that this code does not know."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
