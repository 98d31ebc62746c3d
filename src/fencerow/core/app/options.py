"""Options of a single submit, checked where they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypedDict

from fencerow.core.errors import ConfigError, DeclarationError, InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.control import check_delay
from fencerow.core.model.defaults import DAY_S, Defaults
from fencerow.core.model.ids import parse_id
from fencerow.core.model.instants import instant_us
from fencerow.core.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.offered import offered_names, said_of
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text

NAME_LENGTH_MAX: Final = 200
QUEUE_LENGTH_MAX: Final = 100
KEY_LENGTH_MAX: Final = 256
KEY_LIFETIME_S_MAX: Final = 3650 * DAY_S
SUBMIT_LIMITS: Final = (
    "priority", "attempts_max", "backoff", "timeout_s", "expires_s", "retention_s", "ephemeral",
)  # fmt: skip
NOWHERE_ELSE: Final[Mapping[str, tuple[str, str]]] = {}
Refusal = type[InvalidInput] | type[DeclarationError]


class CoreSubmitOptions(TypedDict, total=False):
    """The options of `using`, but for those of wings. None means the same as no option."""

    id: str | None  # for repeating a submit whose outcome was lost
    key: str | None  # one job under it, in its scope
    scope: str | None  # by default the job's name
    key_lifetime_s: Seconds | None  # from the end of the job
    delay_s: Seconds | None
    run_at: datetime | None  # aware
    queue: str | None
    priority: int | None  # -100 to 100, higher first
    attempts_max: int | None
    backoff: Backoff | None
    timeout_s: Seconds | None  # bounds one attempt
    expires_s: Seconds | None  # from the submit to the start of an attempt
    retention_s: Seconds | None  # how long it is kept once finished
    ephemeral: bool | None  # its success leaves no row
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    connection: Any  # the caller's own, in whose transaction it is submitted


SUBMIT_NAMES: Final = frozenset(CoreSubmitOptions.__annotations__)


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """How one submit differs from what its job declares. None leaves the choice to the job."""

    id: str | None = None
    key: str | None = None
    scope: str | None = None
    key_lifetime_s: float | None = None
    delay_s: float = 0.0
    run_at_us: int | None = None
    queue: str | None = None
    limits: Defaults = Defaults()  # noqa: RUF009 - it is frozen
    of_wings: Mapping[str, Any] = field(default_factory=dict)  # what their options say, by their names
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    connection: Any = None


def submit_options(**given: Any) -> SubmitOptions:
    """The options of one submit, `GivenSubmitOptions`.

    Raises:
        InvalidInput: one of them cannot be used. Nothing is stored.
    """
    refuse_unknown_options(given, SUBMIT_NAMES, "a submit")
    key, scope = given.get("key"), given.get("scope")
    delay_s, run_at = given.get("delay_s"), given.get("run_at")
    id_, queue = given.get("id"), given.get("queue")
    tags, metadata, headers = given.get("tags", ()), given.get("metadata") or {}, given.get("headers") or {}
    _refuse_contradictions(given)
    # A look ahead: they are encoded again when they are stored, after middleware may have added some.
    encode_tags(tags)
    encode_metadata(metadata)
    encode_headers(headers)
    try:
        limits = Defaults(**{name: given[name] for name in SUBMIT_LIMITS if name in given})
        of_wings = said_of(given)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
    return SubmitOptions(
        id=None if id_ is None else parse_id(id_),
        key=None if key is None else check_text(key, "key", KEY_LENGTH_MAX),
        scope=None if scope is None else check_text(scope, "scope", KEY_LENGTH_MAX),
        key_lifetime_s=checked_key_lifetime(given.get("key_lifetime_s"), InvalidInput),
        delay_s=0.0 if delay_s is None else check_delay(delay_s, "delay_s", zero=True),
        run_at_us=None if run_at is None else instant_us(run_at, "run_at"),
        queue=None if queue is None else check_text(queue, "queue", QUEUE_LENGTH_MAX),
        limits=limits,
        of_wings=of_wings,
        tags=tuple(tags),
        metadata=dict(metadata),
        headers=dict(headers),
        connection=given.get("connection"),
    )


def checked_key_lifetime(given: Seconds | None, kind: Refusal) -> float | None:
    """How long a key lives on after the end of its job, if somebody says so."""
    seconds = in_seconds(given)
    if seconds is None:
        return None
    try:
        check_number("key_lifetime_s", seconds, 1.0, KEY_LIFETIME_S_MAX)
    except ConfigError as error:
        raise kind(error.what, error.why, error.fix) from None
    return float(seconds)


def refuse_unknown_options(
    given: Mapping[str, Any],
    known: Set[str],
    who: str,
    *,
    offered: bool = True,
    elsewhere: Mapping[str, tuple[str, str]] = NOWHERE_ELSE,
) -> None:
    """Refuse options that are neither known nor, unless they cannot stand there, `offered` by a wing.

    `elsewhere`: why others of ours cannot stand there, and what to write.

    Raises:
        WrongCall: there is one.
    """
    if not given.keys() <= known:
        from fencerow.core.model.misfit import refuse_unknown  # who writes no option of a wing never loads it

        names = {*known, *(offered_names() if offered else ())}
        of_submits = {name: _of_one_submit(name) for name in SUBMIT_NAMES - names}
        refuse_unknown(given, names, who, {**of_submits, **elsewhere})


def _of_one_submit(name: str) -> tuple[str, str]:
    return "that is said of one submit", f"write job.using({name}=...).submit(...)"


def _refuse_contradictions(given: Mapping[str, Any]) -> None:
    backoff: object = given.get("backoff")
    apart = given.get("scope") is not None or given.get("key_lifetime_s") is not None
    if given.get("key") is None and apart:
        raise InvalidInput(
            "scope or key_lifetime_s was given without a key",
            "they are the scope and the lifetime of a key",
            "add key=",
        )
    if given.get("delay_s") is not None and given.get("run_at") is not None:
        raise InvalidInput(
            "delay_s and run_at were both given", "each says when the job is due", "pass one of them"
        )
    if backoff is not None and not isinstance(backoff, Backoff):
        raise InvalidInput(
            f"backoff is of type {type(backoff).__name__}",
            "a single submit stores its backoff with the job, so it must be a Backoff",
            "pass Backoff(base_s=...), or give the function to @app.job",
        )
