"""Who has a turn and who waits for one, as several routes tell it, and how many of them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fencerow.web.gateway.shapes import Instant, JobState, Told

SHOWN_MAX = 200

Shown = Annotated[int, Meta(ge=1, le=SHOWN_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=400)]


class Holder(Told, frozen=True, kw_only=True):
    """A job that has a turn, and who runs it; nobody does where `worker_id` is null."""

    id: str
    queue: str
    name: str
    state: JobState
    attempt: int
    strict: bool
    at_once: int
    since: Instant
    run_at: Instant
    started: Instant | None
    deadline: Instant | None
    worker_id: str | None
    worker: str | None
    host: str | None
    pid: int | None


class Waiter(Told, frozen=True, kw_only=True):
    """A job that waits for a turn; `paused`: its queue is."""

    id: str
    queue: str
    name: str
    priority: int
    attempt: int
    strict: bool
    at_once: int
    run_at: Instant
    submitted: Instant
    paused: bool


class ListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many."""

    limit: Shown = 100
