"""From a call of a declared job to the row that is stored: middleware, defaults, the checks at the door."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from fencerow.app.options import SubmitOptions
from fencerow.client.submitting import Submission
from fencerow.errors import InvalidInput
from fencerow.model.backoff import Backoff
from fencerow.model.codec import fingerprint
from fencerow.model.defaults import Defaults
from fencerow.model.ids import new_id
from fencerow.model.job import KeyClaim, NewJob
from fencerow.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.model.stored_options import encode_options
from fencerow.worker.handler import Handler

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What was declared of a job, checked."""

    name: str
    queue: str
    limits: Defaults
    key_lifetime_s: float | None
    handler: Handler


@dataclass(slots=True)
class Draft:
    """A submit on its way, as submit middleware sees it: it may change tags, metadata and headers."""

    id: str
    name: str
    queue: str
    key: str | None
    tags: list[str]
    metadata: dict[str, Any]
    headers: dict[str, str]


SubmitMiddleware = Callable[[Draft], AbstractContextManager[Any]]
SubmitGenerator = Callable[[Draft], Iterator[None]]


@dataclass(frozen=True, slots=True)
class Call(Generic[R_co]):
    """One call of a declared job, checked and encoded, not yet submitted. Made by `job.call(...)`."""

    declaration: Declaration
    options: SubmitOptions
    args: bytes

    def draft(self) -> Draft:
        """What middleware gets to see. The id is made here, once, so that a repeat names the same job."""
        options = self.options
        return Draft(
            id=options.id or new_id(),
            name=self.declaration.name,
            queue=options.queue or self.declaration.queue,
            key=options.key,
            tags=list(options.tags),
            metadata=dict(options.metadata),
            headers=dict(options.headers),
        )


class Layers:
    """The layers of options that stand behind a job: those of the app, and those of each queue."""

    def __init__(self, app: Defaults, queues: Mapping[str, Defaults], key_lifetime_s: float) -> None:
        self.key_lifetime_s = key_lifetime_s
        self._app = app
        self._queues = dict(queues)
        # Merging takes longer than all the rest of a submit, and few combinations ever occur.
        self._remembered = lru_cache(maxsize=1024)(self._merged)

    def of(self, queue: str, *further: Defaults) -> Defaults:
        """What holds in a queue, after the layers that win over it."""
        try:
            return self._remembered(queue, *further)
        except TypeError:  # a backoff that cannot be hashed, such as a callable dataclass
            return self._merged(queue, *further)

    def _merged(self, queue: str, *further: Defaults) -> Defaults:
        return Defaults.merged(self._app, self._queues.get(queue, Defaults()), *further)


def submission_of(call: Call[Any], draft: Draft, layers: Layers, actor: str | None) -> Submission:
    """The row to store, and the key to claim.

    Raises:
        InvalidInput: middleware left something that cannot be kept, or the job would expire before it is due.
    """
    declaration, options = call.declaration, call.options
    queue = options.queue or declaration.queue
    limits = layers.of(queue, declaration.limits, options.limits)
    _refuse_dead_on_arrival(options, limits)
    claim = _key_claim(call, draft.id, layers)
    job = NewJob(
        id=draft.id,
        queue=queue,
        name=declaration.name,
        args=call.args.decode(),
        args_bytes=len(call.args),
        delay_s=options.delay_s,
        run_at_us=options.run_at_us,
        timeout_s=limits.timeout_s,
        expires_s=limits.expires_s,
        retention_s=limits.retention_s,
        ephemeral=bool(limits.ephemeral),
        scope=claim.scope if claim else None,
        key=claim.key if claim else None,
        submitted_by=actor,
        options=_stored_options(limits, declaration),
        tags=encode_tags(draft.tags),
        metadata=encode_metadata(draft.metadata),
        headers=encode_headers(draft.headers),
        **_counts(limits),
    )
    return Submission(job, claim, own_id=options.id is not None)


def _key_claim(call: Call[Any], job_id: str, layers: Layers) -> KeyClaim | None:
    options, declaration = call.options, call.declaration
    if options.key is None:
        return None
    return KeyClaim(
        scope=options.scope or declaration.name,
        key=options.key,
        job_id=job_id,
        fingerprint=fingerprint(declaration.name, call.args),
        lifetime_s=options.key_lifetime_s or declaration.key_lifetime_s or layers.key_lifetime_s,
    )


def _stored_options(limits: Defaults, declaration: Declaration) -> str | None:
    """A backoff that the worker would not find in the job's declaration travels with the job, as does a version."""
    own = limits.backoff
    known = not isinstance(own, Backoff) or own == declaration.handler.rule.backoff
    backoff = own if isinstance(own, Backoff) and not known else None
    return encode_options(backoff, declaration.handler.arguments.version)


def _counts(limits: Defaults) -> dict[str, int]:
    names = ("priority", "attempts_max", "crashes_max", "snoozes_max")
    return {name: getattr(limits, name) for name in names if getattr(limits, name) is not None}


def _refuse_dead_on_arrival(options: SubmitOptions, limits: Defaults) -> None:
    if limits.expires_s is not None and 0 < limits.expires_s <= options.delay_s:
        raise InvalidInput(
            f"the job would expire after {limits.expires_s:g} s but is due after {options.delay_s:g} s",
            "expires_s counts from the submit",
            "raise expires_s or lower delay_s",
        )
