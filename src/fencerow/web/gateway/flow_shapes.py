"""The documents of flows: what is sent to submit one, and how it stands. See docs/guide/flows.md."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from fencerow.web.gateway.shapes import ErrorDocument, Instant, JobState, Told

FlowState = Literal["running", "succeeded", "failed", "cancelled"]
Outcome = Literal["done", "succeeded", "failed"]
FlowName = Annotated[str, Meta(min_length=1, max_length=200)]


class FlowCountsDocument(Told, frozen=True):
    """How many jobs of a flow stand in which state."""

    waiting: int
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class FlowSummary(Told, frozen=True):
    """A flow of a list. `jobs`: how many it has; `live`: how many of them have not ended."""

    id: str
    name: str
    state: FlowState
    jobs: int
    live: int
    failed: int
    cancelled: int
    submitted_at: Instant
    submitted_by: str | None
    cancel_requested_at: Instant | None
    cancel_requested_by: str | None
    ended_at: Instant | None


class FlowList(Told, frozen=True):
    """A page of flows, the newest first. `next` is the cursor of the page after it, null if there is none."""

    flows: list[FlowSummary]
    next: str | None


class CallbackDocument(Told, frozen=True):
    """The job `id` that is made once the flow is `outcome`: since when it is there, or why it could not be made."""

    id: str
    outcome: Outcome
    job: str
    made_at: Instant | None
    trouble: str | None


class FlowDocument(FlowSummary, frozen=True):
    """A flow as it stands, with how many jobs are in which state, and its callbacks."""

    counts: FlowCountsDocument
    callbacks: list[CallbackDocument]


class FlowJobDocument(Told, frozen=True):
    """A job of a flow: `name` there, `job` as it is declared, and for whom it waits. `place`: behind all of those."""

    id: str
    name: str
    job: str
    place: int
    level: int
    stage: bool
    state: JobState
    ended_at: Instant | None
    needs: list[str]
    after: list[str]
    error: ErrorDocument | None


class FlowJobList(Told, frozen=True):
    """A page of a flow's jobs, each behind those that it waits for. `next`: the cursor of the page after it."""

    jobs: list[FlowJobDocument]
    next: str | None


class FlowSubmitted(Told, frozen=True):
    """The flow that the submit came to. A repeat under the same key is answered in the same words."""

    id: str
    name: str
    jobs: int
    url: str


class FlowCancelled(Told, frozen=True):
    """What the cancel did: jobs that never run again, and jobs whose workers were asked to stop them."""

    id: str
    cancelled: int
    asked: int


class FlowRevived(Told, frozen=True):
    """What the revive did: jobs that run again, jobs that wait for these, and some that others locked: ask again."""

    id: str
    queued: int
    waiting: int
    left: int
