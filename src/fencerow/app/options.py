"""Options of a job and of a single submit, checked where they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from fencerow.errors import ConfigError, DeclarationError, InvalidInput
from fencerow.model.backoff import Backoff
from fencerow.model.control import check_delay
from fencerow.model.defaults import DAY_S, Defaults, check_number
from fencerow.model.ids import parse_id
from fencerow.model.job import EPOCH
from fencerow.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.model.text import check_text

NAME_LENGTH_MAX: Final = 200
QUEUE_LENGTH_MAX: Final = 100
KEY_LENGTH_MAX: Final = 256
KEY_LIFETIME_S_MAX: Final = 3650 * DAY_S


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


def submit_options(
    *,
    id: str | None = None,  # noqa: A002 - the word of the public interface
    key: str | None = None,
    scope: str | None = None,
    key_lifetime_s: float | None = None,
    delay_s: float | None = None,
    run_at: datetime | None = None,
    queue: str | None = None,
    priority: int | None = None,
    attempts_max: int | None = None,
    backoff: Backoff | None = None,
    timeout_s: float | None = None,
    expires_s: float | None = None,
    retention_s: float | None = None,
    ephemeral: bool | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    connection: Any = None,
) -> SubmitOptions:
    """The options of one submit.

    Raises:
        InvalidInput: one of them cannot be used. Nothing is stored.
    """
    if key is None and (scope is not None or key_lifetime_s is not None):
        raise InvalidInput(
            "scope or key_lifetime_s was given without a key",
            "they say where and how long a key counts",
            "add key=",
        )
    if delay_s is not None and run_at is not None:
        raise InvalidInput(
            "delay_s and run_at were both given", "each says when the job is due", "pass one of them"
        )
    if backoff is not None and not isinstance(backoff, Backoff):
        raise InvalidInput(
            f"backoff is of type {type(backoff).__name__}",
            "a single submit stores its backoff with the job, so it must be a Backoff",
            "pass Backoff(base_s=...), or give the function to @app.job",
        )
    limits = _limits(
        priority=priority,
        attempts_max=attempts_max,
        backoff=backoff,
        timeout_s=timeout_s,
        expires_s=expires_s,
        retention_s=retention_s,
        ephemeral=ephemeral,
    )
    # A look ahead: they are encoded again when they are stored, after middleware may have added some.
    encode_tags(tags)
    encode_metadata(metadata or {})
    encode_headers(headers or {})
    return SubmitOptions(
        id=None if id is None else parse_id(id),
        key=None if key is None else check_text(key, "key", KEY_LENGTH_MAX),
        scope=None if scope is None else check_text(scope, "scope", KEY_LENGTH_MAX),
        key_lifetime_s=checked_key_lifetime(key_lifetime_s, InvalidInput),
        delay_s=0.0 if delay_s is None else check_delay(delay_s, "delay_s", zero=True),
        run_at_us=None if run_at is None else instant_us(run_at, "run_at"),
        queue=None if queue is None else check_text(queue, "queue", QUEUE_LENGTH_MAX),
        limits=limits,
        tags=tuple(tags),
        metadata=dict(metadata or {}),
        headers=dict(headers or {}),
        connection=connection,
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


def _limits(**given: Any) -> Defaults:
    try:
        return Defaults(**given)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
