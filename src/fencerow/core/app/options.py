"""Options of a job and of a single submit, checked where they are written."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict, Unpack

from fencerow.core.errors import ConfigError, DeclarationError, InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.control import check_delay
from fencerow.core.model.defaults import DAY_S, Defaults, check_number
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import EPOCH
from fencerow.core.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.core.model.text import check_text

NAME_LENGTH_MAX: Final = 200
QUEUE_LENGTH_MAX: Final = 100
KEY_LENGTH_MAX: Final = 256
KEY_LIFETIME_S_MAX: Final = 3650 * DAY_S
LIMIT_NAMES: Final = (
    "priority", "attempts_max", "backoff", "timeout_s", "expires_s", "retention_s", "ephemeral",
)  # fmt: skip


class GivenSubmitOptions(TypedDict, total=False):
    """What `using` may be given. None is as if it were left out."""

    id: str | None  # for repeating a submit whose outcome was lost
    key: str | None  # one job under it, in its scope
    scope: str | None  # by default the job's name
    key_lifetime_s: float | None  # from the end of the job
    delay_s: float | None
    run_at: datetime | None  # aware
    queue: str | None
    priority: int | None  # -100 to 100, higher first
    attempts_max: int | None
    backoff: Backoff | None
    timeout_s: float | None  # bounds one attempt
    expires_s: float | None  # from the submit to the start of an attempt
    retention_s: float | None  # how long it is kept once finished
    ephemeral: bool | None  # its success leaves no row
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    connection: Any  # the caller's own, in whose transaction it is submitted


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
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    connection: Any = None


def submit_options(**given: Unpack[GivenSubmitOptions]) -> SubmitOptions:
    """The options of one submit.

    Raises:
        InvalidInput: one of them cannot be used. Nothing is stored.
    """
    _refuse_unknown(given)
    key, scope = given.get("key"), given.get("scope")
    delay_s, run_at = given.get("delay_s"), given.get("run_at")
    id_, queue = given.get("id"), given.get("queue")
    tags, metadata, headers = given.get("tags", ()), given.get("metadata") or {}, given.get("headers") or {}
    _refuse_contradictions(given)
    # A look ahead: they are encoded again when they are stored, after middleware may have added some.
    encode_tags(tags)
    encode_metadata(metadata)
    encode_headers(headers)
    return SubmitOptions(
        id=None if id_ is None else parse_id(id_),
        key=None if key is None else check_text(key, "key", KEY_LENGTH_MAX),
        scope=None if scope is None else check_text(scope, "scope", KEY_LENGTH_MAX),
        key_lifetime_s=checked_key_lifetime(given.get("key_lifetime_s"), InvalidInput),
        delay_s=0.0 if delay_s is None else check_delay(delay_s, "delay_s", zero=True),
        run_at_us=None if run_at is None else instant_us(run_at, "run_at"),
        queue=None if queue is None else check_text(queue, "queue", QUEUE_LENGTH_MAX),
        limits=_limits(given),
        tags=tuple(tags),
        metadata=dict(metadata),
        headers=dict(headers),
        connection=given.get("connection"),
    )


def checked_key_lifetime(
    seconds: float | None, kind: type[InvalidInput] | type[DeclarationError]
) -> float | None:
    """How long a key lives on after the end of its job, if somebody says so."""
    if seconds is None:
        return None
    try:
        check_number("key_lifetime_s", seconds, 1.0, KEY_LIFETIME_S_MAX)
    except ConfigError as error:
        raise kind(error.what, error.why, error.fix) from None
    return float(seconds)


def instant_us(moment: object, what: str) -> int:
    """An aware datetime as microseconds since 1970.

    Raises:
        InvalidInput: it is naive, no datetime, or before 1970.
    """
    if not isinstance(moment, datetime):
        raise InvalidInput(
            f"{what} is of type {type(moment).__name__}", "a datetime is expected", "pass a datetime"
        )
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(
            f"{what} is {moment.isoformat()}, which names no time zone",
            "the same words mean another instant on every host",
            "pass an aware datetime, such as datetime.now(UTC), or delay_s",
        )
    if moment < EPOCH:
        raise InvalidInput(
            f"{what} is {moment.isoformat()}", "instants from 1970 on are kept", "pass a later one"
        )
    return (moment - EPOCH) // timedelta(microseconds=1)


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in GivenSubmitOptions.__annotations__:
            known = sorted(GivenSubmitOptions.__annotations__)
            close = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
            raise InvalidInput(
                f"a submit was given the option {ascii(name)[:60]}",
                f"did you mean {' or '.join(close)}?" if close else f"it takes {', '.join(known)}",
                "correct or remove it",
            )


def _refuse_contradictions(given: GivenSubmitOptions) -> None:
    backoff: object = given.get("backoff")
    apart = given.get("scope") is not None or given.get("key_lifetime_s") is not None
    if given.get("key") is None and apart:
        raise InvalidInput(
            "scope or key_lifetime_s was given without a key",
            "they say where and how long a key counts",
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


def _limits(given: Mapping[str, Any]) -> Defaults:
    try:
        return Defaults(**{name: given[name] for name in LIMIT_NAMES if name in given})
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
