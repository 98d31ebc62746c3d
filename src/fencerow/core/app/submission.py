"""From a call of a declared job to the row that is stored: middleware, defaults, the checks at the door."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from fencerow.core.app.options import SubmitOptions
from fencerow.core.client.submission import Submission
from fencerow.core.errors import InvalidInput
from fencerow.core.model.backoff import Backoff, encode_options
from fencerow.core.model.codec import fingerprint
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import KeyClaim, NewJob, Template
from fencerow.core.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.core.worker.handler import Handler

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


class Recipe:
    """How calls are to be submitted: what was declared of the job, and the options of `using`.

    Their template is made once. It depends on nothing else but who submits: the layers of an app stay.
    """

    __slots__ = ("_made", "declaration", "options")

    def __init__(self, declaration: Declaration, options: SubmitOptions) -> None:
        self.declaration = declaration
        self.options = options
        self._made: tuple[Layers, str | None, Template] | None = None

    def template(self, layers: Layers, actor: str | None) -> Template:
        """The columns that all jobs submitted so have in common, without what middleware adds.

        Raises:
            InvalidInput: the job would expire before it is due.
        """
        made = self._made
        if made is None or made[0] is not layers or made[1] != actor:
            made = self._made = (layers, actor, template_of(self, layers, actor))
        return made[2]


class Call(msgspec.Struct, Generic[R_co], frozen=True, gc=False):
    """One call of a declared job, checked and encoded, not yet submitted. Made by `job.call(...)`."""

    recipe: Recipe
    args: bytes

    def draft(self) -> Draft:
        """What middleware gets to see. The id is made here, once, so that a repeat names the same job."""
        options = self.recipe.options
        return Draft(
            id=options.id or new_id(),
            name=self.recipe.declaration.name,
            queue=options.queue or self.recipe.declaration.queue,
            key=options.key,
            tags=list(options.tags),
            metadata=dict(options.metadata),
            headers=dict(options.headers),
        )


def checked(call: Call[R_co]) -> Call[R_co]:
    """The call, if it is one: a declared job that is called runs at once and returns its result instead.

    Raises:
        InvalidInput: it is none.
    """
    if isinstance(call, Call):
        return call
    raise _no_call(call)


def _no_call(given: object) -> InvalidInput:
    if isinstance(given, Coroutine):
        given.close()
    return InvalidInput(
        f"a value of type {type(given).__name__} was given to be submitted",
        "`job(...)` runs the handler here; what is submitted is made by `job.call(...)`",
        "write job.call(...) here, or job.submit(...)",
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


def submission_of(call: Call[Any], job_id: str, layers: Layers, actor: str | None) -> Submission:
    """The row to store, and the key to claim.

    Raises:
        InvalidInput: the job would expire before it is due.
    """
    recipe, args = call.recipe, call.args
    job = NewJob(job_id, args.decode(), len(args), recipe.template(layers, actor))
    if recipe.options.key is None and recipe.options.id is None:
        return Submission(job)
    return Submission(job, _key_claim(call, job_id, layers), own_id=recipe.options.id is not None)


def with_labels(plain: Submission, draft: Draft) -> Submission:
    """The submission with the labels that middleware left in the draft.

    Raises:
        InvalidInput: they cannot be kept.
    """
    labels = {
        "tags": encode_tags(draft.tags),
        "metadata": encode_metadata(draft.metadata),
        "headers": encode_headers(draft.headers),
    }
    template = plain.job.template
    if all(getattr(template, name) == text for name, text in labels.items()):
        return plain
    job = msgspec.structs.replace(plain.job, template=msgspec.structs.replace(template, **labels))
    return msgspec.structs.replace(plain, job=job)


def template_of(recipe: Recipe, layers: Layers, actor: str | None) -> Template:
    """See `Recipe.template`."""
    declaration, options = recipe.declaration, recipe.options
    queue = options.queue or declaration.queue
    limits = layers.of(queue, declaration.limits, options.limits)
    _refuse_dead_on_arrival(options, limits)
    return Template(
        queue=queue,
        name=declaration.name,
        delay_s=options.delay_s,
        run_at_us=options.run_at_us,
        timeout_s=limits.timeout_s,
        expires_s=limits.expires_s,
        retention_s=limits.retention_s,
        ephemeral=bool(limits.ephemeral),
        scope=None if options.key is None else _scope(recipe),
        key=options.key,
        submitted_by=actor,
        options=_stored_options(limits, declaration),
        tags=encode_tags(options.tags),
        metadata=encode_metadata(options.metadata),
        headers=encode_headers(options.headers),
        **_counts(limits),
    )


def _key_claim(call: Call[Any], job_id: str, layers: Layers) -> KeyClaim | None:
    options, declaration = call.recipe.options, call.recipe.declaration
    if options.key is None:
        return None
    return KeyClaim(
        scope=_scope(call.recipe),
        key=options.key,
        job_id=job_id,
        fingerprint=fingerprint(declaration.name, call.args),
        lifetime_s=options.key_lifetime_s or declaration.key_lifetime_s or layers.key_lifetime_s,
    )


def _scope(recipe: Recipe) -> str:
    return recipe.options.scope or recipe.declaration.name


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
