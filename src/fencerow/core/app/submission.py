"""What a submit stores besides the arguments: the columns that all jobs submitted alike have in common, and the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from fencerow.core.app.options import SubmitOptions
from fencerow.core.errors import InvalidInput
from fencerow.core.model.backoff import Backoff, encode_options
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import KeyClaim, Template
from fencerow.core.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.core.model.packing import PLAIN
from fencerow.core.model.submission import Submission
from fencerow.core.offered import SubmitKind, agreed, alike_in, columns_in


@dataclass(frozen=True, slots=True)
class Declaration:
    """What was declared of a job, checked."""

    name: str
    queue: str
    limits: Defaults
    key_lifetime_s: float | None
    handler: Handler
    of_wings: Mapping[str, Any] = field(default_factory=dict)


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


class Layers:
    """The layers of options that stand behind a job: those of the app, and those of each queue."""

    def __init__(self, app: Defaults, queues: Mapping[str, Defaults], key_lifetime_s: float) -> None:
        self.key_lifetime_s = key_lifetime_s
        self._app = app
        self._queues = dict(queues)
        # Merging takes longer than all the rest of a submit, and few combinations ever occur.
        self._remembered = lru_cache(maxsize=1024)(self._merged)

    @property
    def queues(self) -> frozenset[str]:
        """The queues that the app gives options to."""
        return frozenset(self._queues)

    def of(self, queue: str, *further: Defaults) -> Defaults:
        """What holds in a queue, after the layers that win over it."""
        try:
            return self._remembered(queue, *further)
        except TypeError:  # a backoff that cannot be hashed, such as a callable dataclass
            return self._merged(queue, *further)

    def _merged(self, queue: str, *further: Defaults) -> Defaults:
        return Defaults.merged(self._app, self._queues.get(queue, Defaults()), *further)


class Recipe:
    """How calls are to be submitted: what was declared of the job, and the options of `using`.

    What follows from them is decided here once, and not at each submit.

    `is_plain`: the caller named neither an id nor a key, so that nobody can have stored the job before. `is_bare`: it
    is plain, wings say nothing of it, and its arguments are stored as they are: a row from the template is all of it.
    `agreed`: what holds of the options of wings. `settles`: a wing decides what a submit comes to.
    `columns`: what such options say in columns of the job, which follow from its arguments.
    """

    __slots__ = (
        "agreed",
        "columns",
        "declaration",
        "decode",
        "is_bare",
        "is_plain",
        "made",
        "options",
        "settles",
    )

    def __init__(self, declaration: Declaration, options: SubmitOptions) -> None:
        self.declaration = declaration
        self.options = options
        self.decode = declaration.handler.result.decode
        self.is_plain = options.key is None and options.id is None
        due = options.delay_s > 0 or options.run_at_us is not None
        submits = SubmitKind(declaration.name, keyed=options.key is not None, due=due)
        self.agreed = agreed(options.of_wings, declaration.of_wings, submits)
        self.settles = any(each.options.settles for each in self.agreed)
        self.columns = columns_in(self.agreed)
        self.is_bare = self.is_plain and not self.agreed and declaration.handler.packing is PLAIN
        # The template, made for the app that submitted it last: mostly there is but one.
        self.made: tuple[Layers, Template] | None = None

    def template_for(self, layers: Layers, actor: str | None) -> Template:
        """Make the columns that all jobs submitted so have in common, without what middleware adds.

        Raises:
            InvalidInput: the job would expire before it is due.
        """
        template = _template_of(self, layers, actor)
        self.made = layers, template
        return template

    def columns_of(self, args: bytes) -> dict[str, Any]:
        """What the options of wings say in columns of a job with these arguments, by their names.

        Raises:
            InvalidInput: a function that computes one failed, or gave something else.
        """
        arguments = self.declaration.handler.arguments
        return {name: column(args, arguments) for name, column in self.columns.items()}

    def column_of(self, name: str, args: bytes) -> Any:
        """The same of one column; None where nothing is said of it."""
        column = self.columns.get(name)
        return None if column is None else column(args, self.declaration.handler.arguments)

    def packed(self, job_id: str, args: bytes) -> bytes:
        """Encoded arguments as they are stored with that job. Those that may come to replace another's stay in the row.

        Raises:
            StoreUnavailable: they are large, and their store does not answer. Nothing is stored.
        """
        return self.declaration.handler.packed_arguments(job_id, args, inside=self._may_replace)

    async def apacked(self, job_id: str, args: bytes) -> bytes:
        """`packed` for async code."""
        return await self.declaration.handler.apacked_arguments(job_id, args, inside=self._may_replace)

    @property
    def _may_replace(self) -> bool:
        return self.settles and any(each.options.may_replace(each.what) for each in self.agreed)

    def agrees_on(self, wing: str) -> bool:
        """Whether something holds of the options of this wing."""
        return any(each.wing == wing for each in self.agreed)

    def packed_inside(self, job_id: str, args: bytes) -> bytes:
        """The same in the row, however large; without an id, for a schedule."""
        return self.declaration.handler.packed_arguments(job_id, args, inside=True)

    def terms_of(self, args: bytes) -> dict[str, Any] | None:
        """The terms of a job with these arguments; None: it has none.

        Raises:
            InvalidInput: the function that computes one failed, or gave no text.
        """
        handler = self.declaration.handler
        found = ((each.wing, each.options.term(each.what, args, handler)) for each in self.agreed)
        return {wing: term for wing, term in found if term is not None} or None

    def key_claim(self, job_id: str, args: bytes, layers: Layers) -> KeyClaim | None:
        """The key that a job with these arguments is to own, if it was submitted under one."""
        options, declaration = self.options, self.declaration
        if options.key is None:
            return None
        return KeyClaim(
            scope=options.scope or declaration.name,
            key=options.key,
            job_id=job_id,
            fingerprint=declaration.handler.packing.fingerprint(declaration.name, args),
            lifetime_s=options.key_lifetime_s or declaration.key_lifetime_s or layers.key_lifetime_s,
            also=declaration.handler.packing.fingerprint_before(declaration.name, args),
        )

    def draft(self, job_id: str) -> Draft:
        """What middleware gets to see."""
        options = self.options
        return Draft(
            id=job_id,
            name=self.declaration.name,
            queue=options.queue or self.declaration.queue,
            key=options.key,
            tags=list(options.tags),
            metadata=dict(options.metadata),
            headers=dict(options.headers),
        )


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


def _template_of(recipe: Recipe, layers: Layers, actor: str | None) -> Template:
    declaration, options = recipe.declaration, recipe.options
    queue = options.queue or declaration.queue
    limits = layers.of(queue, declaration.limits, options.limits)
    delay_s = options.delay_s
    for each in recipe.agreed:
        each.options.refuse(each.what, limits)
        delay_s = each.options.delay_s(each.what) or delay_s
    _refuse_dead_on_arrival(delay_s, limits)
    return Template(
        queue=queue,
        name=declaration.name,
        delay_s=delay_s,
        run_at_us=options.run_at_us,
        timeout_s=limits.timeout_s,
        expires_s=limits.expires_s,
        retention_s=limits.retention_s,
        ephemeral=bool(limits.ephemeral),
        scope=None if options.key is None else options.scope or declaration.name,
        key=options.key,
        submitted_by=actor,
        options=_stored_options(limits, declaration),
        tags=encode_tags(options.tags),
        metadata=encode_metadata(options.metadata),
        headers=encode_headers(options.headers),
        **_counts(limits),
        **alike_in(recipe.agreed),
    )


def _stored_options(limits: Defaults, declaration: Declaration) -> str | None:
    """A backoff that the worker would not find in the job's declaration travels with the job, as does a version."""
    own = limits.backoff
    known = not isinstance(own, Backoff) or own == declaration.handler.rule.backoff
    backoff = own if isinstance(own, Backoff) and not known else None
    return encode_options(backoff, declaration.handler.arguments.version)


def _counts(limits: Defaults) -> dict[str, Any]:
    names = ("priority", "attempts_max", "crashes_max", "snoozes_max")
    return {name: getattr(limits, name) for name in names if getattr(limits, name) is not None}


def _refuse_dead_on_arrival(delay_s: float, limits: Defaults) -> None:
    if limits.expires_s is not None and 0 < limits.expires_s <= delay_s:
        raise InvalidInput(
            f"the job would expire after {limits.expires_s:g} s but is due after {delay_s:g} s",
            "expires_s counts from the submit",
            "raise expires_s or lower delay_s",
        )
