"""Lists of jobs: those that fit all filters, the newest first, a page at a time."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import JobRecord
from fencerow.core.model.labels import Plain
from fencerow.web.gateway.reached import reached
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import ErrorDocument, Instant, JobState, Told, job_document
from fencerow.web.tokens.scope import Scope

LIMIT_MAX = 200
EACH_MAX = 20
# A token that is good for several queues is asked of each of them: so many statements are one request at most.
QUEUES_MAX = 16

Name = Annotated[str, Meta(max_length=1_000)]


class JobsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs. A job must fit all that is given; of several states, one."""

    queue: Name | None = None
    job: Name | None = None
    state: Annotated[list[JobState], Meta(max_length=EACH_MAX)] = []
    tag: Annotated[list[Name], Meta(max_length=EACH_MAX, description="a job must carry all of them")] = []
    metadata: Annotated[
        list[Annotated[str, Meta(pattern="=", max_length=2_000)]],
        Meta(
            max_length=EACH_MAX,
            description="`NAME=VALUE`; the value is a plain JSON value, or else text; a job must have all of them",
        ),
    ] = []
    scope: Name | None = None
    key: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    cursor: Annotated[str, Meta(description="`next` of the page before")] | None = None


class ListedJob(Told, frozen=True, kw_only=True):
    """A job of a list: as it stands, without its metadata, which a list does not read."""

    id: str
    job: str
    queue: str
    state: JobState
    priority: int
    attempt: int
    failures: int
    attempts_max: int
    submitted_at: Instant
    run_at: Instant
    claimed_at: Instant | None
    ended_at: Instant | None
    expires_at: Instant | None
    cancel_requested_at: Instant | None
    progress: float | None
    progress_note: str | None
    key: str | None
    scope: str | None
    exclusive: str | None
    limits: list[str] | None
    share: str | None
    affinity: str | None
    tags: list[str] | None
    error: ErrorDocument | None


class JobList(Told, frozen=True, kw_only=True):
    """A page of jobs. `next` is the cursor of the page after it, null if there is none."""

    jobs: list[ListedJob]
    next: str | None


async def list_jobs(call: Call) -> Answer:
    """The newest jobs that fit, without their payloads.

    A page says in `next`, and in `Link`, where the next one begins. A token that is good for some queues sees the jobs
    of these. Jobs that are submitted while somebody turns pages are newer than all pages that follow.
    """
    wanted: JobsWanted = call.query
    found = await _found(call, wanted)
    shown = found[: wanted.limit]
    following = cursor_of(shown[-1].id) if len(found) > len(shown) else None
    headers = {} if following is None else {"link": f'<{_address(call, following)}>; rel="next"'}
    return Answer(200, JobList(jobs=[_listed(job) for job in shown], next=following), headers)


async def _found(call: Call, wanted: JobsWanted) -> Sequence[JobRecord]:
    """The page, and one job more if there is one.

    Of several queues, each is asked for as many: the newest of all are among the newest of each.
    """
    filters: dict[str, Any] = {
        "name": wanted.job,
        "states": wanted.state,
        "tags": wanted.tag,
        "metadata": _metadata(wanted.metadata),
        "scope": wanted.scope,
        "key": wanted.key,
        "before_id": None if wanted.cursor is None else id_of(wanted.cursor),
        "limit": wanted.limit + 1,
    }
    pages = [await call.client.alist_jobs(queue=queue, **filters) for queue in _queues(call, wanted.queue)]
    return list(islice(merge(*pages, key=lambda job: job.id, reverse=True), wanted.limit + 1))


def _queues(call: Call, queue: str | None) -> Sequence[str | None]:
    """The queues to ask of; None asks of all at once.

    Raises:
        NotAllowed: the token is not good for the queue that was named.
        InvalidInput: none was named, and the token is good for too many to ask of each.
    """
    if queue is not None:
        return (reached(call, queue),)
    good_for = call.grant.queues
    if good_for is None:
        return (None,)
    if len(good_for) > QUEUES_MAX:
        raise InvalidInput(
            f"the token is good for {len(good_for)} queues",
            f"a list is made of {QUEUES_MAX} queues at most, or of all",
            "name one: ?queue=NAME",
        )
    return sorted(good_for)


def _metadata(pairs: Sequence[str]) -> Mapping[str, Plain] | None:
    """The fields that were asked for.

    Raises:
        InvalidInput: one is asked for twice.
    """
    found: dict[str, Plain] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name in found:
            raise InvalidInput(
                f"metadata asks twice for {ascii(name)[:60]}", "a field has one value", "ask for one"
            )
        try:
            found[name] = msgspec.json.decode(text, type=str | int | float | bool | None)
        except msgspec.DecodeError:  # what is no JSON, or no plain value
            found[name] = text
    return found or None


def cursor_of(job_id: str) -> str:
    """Where the page after this job begins, as callers carry it."""
    return base64.urlsafe_b64encode(uuid.UUID(job_id).bytes).decode().rstrip("=")


def id_of(cursor: str) -> str:
    """The job after which a page begins.

    Raises:
        InvalidInput: no page said so.
    """
    try:
        job_id = str(uuid.UUID(bytes=base64.urlsafe_b64decode(f"{cursor}==")))
    except ValueError:
        job_id = None
    # Decoding passes over what is not of its alphabet: only the one text that we write is a cursor.
    if job_id is None or cursor_of(job_id) != cursor:
        raise InvalidInput(
            f"cursor is {ascii(cursor)[:60]}", "no page ends there", "take `next` of a page, or none"
        )
    return job_id


def _address(call: Call, cursor: str) -> str:
    wanted: JobsWanted = call.query
    given = {
        name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name)) not in (None, [])
    }
    return f"{call.base}/v1/jobs?{urlencode({**given, 'cursor': cursor}, doseq=True)}"


def _listed(job: JobRecord) -> ListedJob:
    whole = job_document(job)
    fields: dict[str, Any] = {name: getattr(whole, name) for name in ListedJob.__struct_fields__}
    return ListedJob(**fields)


ROUTES = (Route("GET", "/v1/jobs", "listJobs", list_jobs, Scope.READ, {200: JobList}, query=JobsWanted),)
