"""What the gateway answers to a receiver of handovers."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from fencerow.web.gateway.shapes import ErrorDocument, Instant, JobState, Told


class End(Told, frozen=True, kw_only=True):
    """The end of a job, taken. `result` is what its handler returned, `error` why it did not. `unreadable`: the code of
    why there is no result to show. Confirm it under its `fence` before `free_at`."""

    id: str
    job: str
    key: str
    state: JobState
    attempt: int | None
    ended_at: Instant | None
    result: Any
    error: ErrorDocument | None
    unreadable: str | None
    fence: str
    takes: Annotated[int, Meta(description="how often it was taken; beyond 1 it may have been delivered")]
    free_at: Instant | None


class Ends(Told, frozen=True, kw_only=True):
    """The ends that were taken, in the order of the submits; none where none came in time. `after` is for the next
    take: the key that was served last."""

    ends: list[End]
    after: str


class Confirmed(Told, frozen=True, kw_only=True):
    """The end is confirmed; with `replay` it was so before."""

    id: str
    replay: bool


class Released(Told, frozen=True, kw_only=True):
    """Whether the take was given up; it may have been over already."""

    id: str
    released: bool
