"""The records that pass between the floors: a job to be submitted, a claimed attempt, a job as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Self, overload

import msgspec

from fencerow.core.model.state import FINAL, State

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def moment(us: int) -> datetime:
    """Microseconds since 1970 as an aware datetime. What only a database can say is the first or the last there is."""
    try:
        return EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return FIRST if us < 0 else LAST


def instant(us: int | None) -> datetime | None:
    """The same, or None."""
    return None if us is None else moment(us)


class At(property):
    """An instant of a record for who reads it: `ended_at = At("ended_at_us")`.

    Records keep whole microseconds, as the tables do. Nobody else's code should have to divide by a million.
    """

    def __init__(self, field: str) -> None:
        def instant_of(record: object) -> datetime:
            return moment(getattr(record, field))

        instant_of.__doc__ = f"`{field}` as an aware datetime in UTC."
        super().__init__(instant_of)

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None, /) -> datetime: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        return super().__get__(instance, owner)


class AtOrNone(property):
    """The same of an instant that may be missing."""

    def __init__(self, field: str) -> None:
        def instant_of(record: object) -> datetime | None:
            return instant(getattr(record, field))

        instant_of.__doc__ = f"`{field}` as an aware datetime in UTC, or None."
        super().__init__(instant_of)

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None, /) -> datetime | None: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        return super().__get__(instance, owner)


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs that are submitted alike have in common: all their columns but id and arguments.

    The texts are the JSON that will be stored, byte for byte. One template is made for many jobs, which name the
    same object: those of one submit are stored under one header.
    """

    queue: str
    name: str
    priority: int = 0
    delay_s: float = 0.0
    run_at_us: int | None = None
    attempts_max: int = 3
    crashes_max: int = 3
    snoozes_max: int = 48
    timeout_s: float | None = None
    expires_s: float | None = None
    retention_s: float | None = None
    scope: str | None = None
    key: str | None = None
    submitted_by: str | None = None
    options: str | None = None
    tags: str | None = None
    metadata: str | None = None
    headers: str | None = None
    ephemeral: bool = False
    exclusive_at_once: int | None = None
    strict: bool = False
    affinity_wait_s: float | None = None


class NewJob(msgspec.Struct, frozen=True, gc=False):
    """A job to be submitted. `args` is the JSON that will be stored, byte for byte.

    `exclusive` is the key of which few jobs run at a time, `limits` are the limits that it names. With one of them the
    job waits for its turn. `share`: whose it is, where a queue is divided between several. `affinity`: the label that a
    worker must carry to take it, for as long as the template says. `terms`: what else was agreed on, by the names of
    the wings that keep it, each as JSON data; None for nearly all jobs. Their row has none of it. `has_turn`: it has
    its turn from its submit on, so it waits for none. `at_limit`: of its key and its limits it waits at a limit first.
    """

    id: str
    args: str
    args_bytes: int
    template: Template
    exclusive: str | None = None
    limits: tuple[str, ...] | None = None
    share: str | None = None
    affinity: str | None = None
    terms: dict[str, Any] | None = None
    has_turn: bool = False
    at_limit: bool = False

    @property
    def is_named(self) -> bool:
        """Whether it names a key, a limit, a share or a label, which few jobs do."""
        # Written out, here and below: each submit asks several times, and a property costs as much as all comparisons.
        return (
            self.exclusive is not None
            or self.limits is not None
            or self.share is not None
            or self.affinity is not None
        )

    @property
    def needs_turn(self) -> bool:
        """Whether it is stored `waiting`, until it is its turn."""
        return (self.exclusive is not None or self.limits is not None) and not self.has_turn

    @property
    def writes_more(self) -> bool:
        """Whether its submit writes more than a queued row: an arrival at its gate, its label, what wings keep."""
        return (
            self.terms is not None
            or self.exclusive is not None
            or self.limits is not None
            or self.affinity is not None
        )

    @property
    def gate(self) -> str | None:
        """Where it waits for its turn first; None if it needs none."""
        if self.has_turn:
            return None
        if self.exclusive is not None and not self.at_limit:
            return f"key:{self.exclusive}"
        return f"limit:{self.limits[0]}" if self.limits else None


def are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether they are several of one template, and wings say nothing of them: they write no more than their rows."""
    if len(jobs) < 2:
        return False
    template = jobs[0].template
    # Written out, in a list: asked of each, by a property and in a generator, it takes three times as long.
    unlike = [
        job.template is not template
        or job.terms is not None
        or job.exclusive is not None
        or job.limits is not None
        or job.share is not None
        or job.affinity is not None
        for job in jobs
    ]
    return True not in unlike


class KeyClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The idempotency key under which a job is submitted; `lifetime_s` counts from the job's end.

    `also`: the fingerprint that the same payload had before payloads were sealed.
    """

    scope: str
    key: str
    job_id: str
    fingerprint: str
    lifetime_s: float
    also: str | None = None


class Claimed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One attempt handed to a worker. `args` is `null` when it must be fetched at start (large, or not JSON)."""

    id: str
    name: str
    queue: str
    attempt: int
    priority: int
    run_at_us: int
    suspect: bool
    failures: int
    crashes: int
    snoozes: int
    attempts_max: int
    snoozes_max: int
    timeout_s: float | None
    submitted_at_us: int
    args: msgspec.Raw
    options: msgspec.Raw
    tags: list[str] | None
    metadata: dict[str, Any] | None
    headers: dict[str, str] | None
    share: str | None = None
    lane: str = ""  # the name of the lane from which it was taken


class Fence(msgspec.Struct, frozen=True):
    """What a job's row says about who may write to it."""

    id: str
    state: State
    holder: str | None
    attempt: int
    cancel_requested: bool = False
    spent: bool = False  # an ephemeral job that succeeded: its id is all that is left, or soon will be


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it stands, live or finished. Instants are the database's: `ended_at` is an aware datetime in UTC,
    `ended_at_us` the microseconds since 1970 that are kept.

    `damaged` names columns that cannot be read, because something other than Fencerow wrote them. Here they
    are empty, or the stored text.
    """

    id: str
    queue: str
    name: str
    state: State
    priority: int
    suspect: bool
    run_at_us: int
    attempt: int
    failures: int
    crashes: int
    snoozes: int
    attempts_max: int
    crashes_max: int
    snoozes_max: int
    submitted_at_us: int
    timeout_s: float | None = None
    holder: str | None = None
    claimed_at_us: int | None = None
    deadline_at_us: int | None = None
    cancel_requested_at_us: int | None = None
    cancel_requested_by: str | None = None
    expires_at_us: int | None = None
    retention_s: float | None = None
    scope: str | None = None
    key: str | None = None
    submitted_by: str | None = None
    revived_at_us: int | None = None
    ended_at_us: int | None = None
    args_bytes: int = 0
    args: Any = None
    options: Any = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    headers: dict[str, str] | None = None
    result: Any = None
    error: Any = None
    progress: float | None = None
    progress_note: str | None = None
    exclusive: str | None = None  # the key of which few run at a time
    exclusive_at_once: int | None = None  # how many; None is one
    strict: bool = False  # it keeps its turn between its attempts
    limits: list[str] | None = None
    gate: str | None = None  # where it waits for its turn, while it does
    share: str | None = None  # whose it is, where a queue is divided between several
    affinity: str | None = None  # the label that a worker must carry to take it
    affinity_wait_s: float | None = None  # after which, from when it is due, anybody may; None: never
    lane: str = ""  # the name of the lane in which it is queued, or would be; empty once it has ended
    damaged: tuple[str, ...] = ()

    run_at = At("run_at_us")
    submitted_at = At("submitted_at_us")
    claimed_at = AtOrNone("claimed_at_us")
    deadline_at = AtOrNone("deadline_at_us")
    cancel_requested_at = AtOrNone("cancel_requested_at_us")
    expires_at = AtOrNone("expires_at_us")
    revived_at = AtOrNone("revived_at_us")
    ended_at = AtOrNone("ended_at_us")

    @property
    def is_final(self) -> bool:
        """Whether it has ended: succeeded, failed or cancelled."""
        return self.state in FINAL


class EndOfJob(msgspec.Struct, frozen=True):
    """How a job ended: its state, and the stored text of its result or error."""

    id: str
    state: State
    result: str | None
    error: str | None


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job's timeline: what happened, when, in which attempt, by whom."""

    at_us: int
    kind: str
    attempt: int
    actor: str | None = None
    detail: Any = None

    at = At("at_us")


class QueueLane(msgspec.Struct, frozen=True):
    """A lane of a queue that holds queued jobs, by its priority and name, and when its first is due. Those of all
    shares are one. `limited`: a limit bounds the claims of the queue."""

    priority: int
    first_us: int
    name: str = ""
    limited: bool = False
