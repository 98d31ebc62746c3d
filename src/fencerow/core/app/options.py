"""Options of a job and of a single submit, checked where they are written.

A job that is declared apart from its handler divides its options: what a submit stores with the job is said in the
contract, what only the running code needs is said where the handler is.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypedDict, TypeVar

from fencerow.core.app.foreign import option_meant
from fencerow.core.app.turns import (
    NO_TURNS,
    LimitsOption,
    TurnOption,
    TurnOptions,
    refuse_unfit_turns,
    turn_options,
)
from fencerow.core.errors import ConfigError, DeclarationError, InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.codec import Upgrade
from fencerow.core.model.control import check_delay
from fencerow.core.model.defaults import DAY_S, Defaults, check_number
from fencerow.core.model.ids import parse_id
from fencerow.core.model.instants import instant_us
from fencerow.core.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.core.model.retry import Matchers
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.text import check_text, shown
from fencerow.core.offered import SubmitKind, agreed, offered_names, said_of

NAME_LENGTH_MAX: Final = 200
QUEUE_LENGTH_MAX: Final = 100
KEY_LENGTH_MAX: Final = 256
KEY_LIFETIME_S_MAX: Final = 3650 * DAY_S
SUBMIT_LIMITS: Final = (
    "priority", "attempts_max", "backoff", "timeout_s", "expires_s", "retention_s", "ephemeral",
)  # fmt: skip
Refusal = type[InvalidInput] | type[DeclarationError]
T = TypeVar("T")
BackoffOption = Backoff | Callable[[int], float]

ARGS_VERSION_MAX: Final = 1_000_000
# What a child needs before it runs anything: 135 MiB of addresses at rest, 200 MiB while it starts.
MEMORY_BYTES_MIN: Final = 256 * 1024 * 1024
JOB_LIMITS: Final = (
    "priority",
    "attempts_max",
    "backoff",
    "timeout_s",
    "retention_s",
    "expires_s",
    "crashes_max",
    "snoozes_max",
    "ephemeral",
)


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
    exclusive: TurnOption | None  # the key of which one job runs at a time, or a function of the arguments
    exclusive_at_once: int | None  # not one, but so many
    strict: bool | None  # a retry keeps its turn, so that nobody of its key goes first
    limits: LimitsOption | None  # the limits under which it runs, or functions of the arguments
    share: TurnOption | None  # whose it is: the shares of a queue take turns; or a function of the arguments
    affinity: (
        TurnOption | None
    )  # the label that a worker must carry to take it, or a function of the arguments
    affinity_wait_s: Seconds | None  # from when it is due; then anybody may take it. Without it: never
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
    turns: TurnOptions = NO_TURNS
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
    _refuse_unknown(given, SUBMIT_NAMES, "a submit", InvalidInput)
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
        key_lifetime_s=_checked_key_lifetime(given.get("key_lifetime_s"), InvalidInput),
        delay_s=0.0 if delay_s is None else check_delay(delay_s, "delay_s", zero=True),
        run_at_us=None if run_at is None else instant_us(run_at, "run_at"),
        queue=None if queue is None else check_text(queue, "queue", QUEUE_LENGTH_MAX),
        limits=_limits(given),
        turns=_checked(turn_options, given),
        of_wings=_checked(said_of, given),
        tags=tuple(tags),
        metadata=dict(metadata),
        headers=dict(headers),
        connection=given.get("connection"),
    )


def _checked_key_lifetime(given: Seconds | None, kind: Refusal) -> float | None:
    """How long a key lives on after the end of its job, if somebody says so."""
    seconds = in_seconds(given)
    if seconds is None:
        return None
    try:
        check_number("key_lifetime_s", seconds, 1.0, KEY_LIFETIME_S_MAX)
    except ConfigError as error:
        raise kind(error.what, error.why, error.fix) from None
    return float(seconds)


def _refuse_unknown(
    given: Mapping[str, Any], known: Collection[str], who: str, kind: Refusal, *, offered: bool = True
) -> None:
    """Refuse options that are neither known nor, unless they cannot stand there, `offered` by a wing."""
    for name in given:
        if name not in known and not (offered and name in offered_names()):
            names = sorted({*known, *(offered_names() if offered else ())})
            close = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
            why = f"did you mean {' or '.join(close)}?" if close else f"it takes {', '.join(names)}"
            why, fix = option_meant(name, names) or (why, "correct or remove it")
            raise kind(f"{who} was given the option {ascii(name)[:60]}", why, fix)


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


def _limits(given: Mapping[str, Any]) -> Defaults:
    try:
        return Defaults(**{name: given[name] for name in SUBMIT_LIMITS if name in given})
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None


def _checked(options: Callable[[Mapping[str, Any]], T], given: Mapping[str, Any]) -> T:
    try:
        return options(given)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None


class CoreContractOptions(TypedDict, total=False):
    """The options that a program needs to submit the job, but for those of wings."""

    name: str | None  # stored with every job; by default the function's own name
    queue: str | None
    priority: int | None  # -100 to 100, higher first
    attempts_max: int | None
    timeout_s: Seconds | None  # bounds one attempt
    retention_s: Seconds | None  # how long it is kept once finished
    expires_s: Seconds | None  # from the submit to the start of an attempt
    ephemeral: bool | None  # its success leaves no row; its failures are kept
    crashes_max: int | None
    snoozes_max: int | None
    key_lifetime_s: Seconds | None
    exclusive: TurnOption | None  # the key of which one job runs at a time, or a function of the arguments
    exclusive_at_once: int | None  # not one, but so many
    strict: bool | None  # a retry keeps its turn, so that nobody of its key goes first
    limits: LimitsOption | None  # the limits under which it runs, or functions of the arguments
    share: TurnOption | None  # whose it is: the shares of a queue take turns; or a function of the arguments
    affinity: (
        TurnOption | None
    )  # the label that a worker must carry to take it, or a function of the arguments
    affinity_wait_s: Seconds | None  # from when it is due; then anybody may take it. Without it: never
    payload_bytes_max: int | None
    args_version: int  # of the arguments' form, from 1; stored with every job


class HandlingOptions(TypedDict, total=False):
    """The options that only the code that runs the job needs."""

    backoff: BackoffOption | None
    retry_on: Matchers
    fail_on: Matchers
    process: (
        bool | None
    )  # in child processes always (True) or never (False); by default only after a worker's death
    memory_bytes_max: int | None  # of a child process, its own code included; needs process=True
    upgrade: Upgrade | None  # from arguments of an older version to those of `args_version`


SUBMIT_NAMES: Final = frozenset(CoreSubmitOptions.__annotations__)
CONTRACT_NAMES: Final = frozenset(CoreContractOptions.__annotations__)
HANDLING_NAMES: Final = frozenset(HandlingOptions.__annotations__)


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of one declaration, checked."""

    name: str | None = None
    queue: str | None = None
    limits: Defaults = Defaults()  # noqa: RUF009 - it is frozen
    retry_on: Matchers = ()
    fail_on: Matchers = ()
    key_lifetime_s: float | None = None
    turns: TurnOptions = NO_TURNS
    of_wings: Mapping[str, Any] = field(default_factory=dict)  # what their options say, by their names
    payload_bytes_max: int | None = None
    args_version: int = 1
    upgrade: Upgrade | None = None
    process: bool | None = None
    memory_bytes_max: int | None = None

    def named(self, name: str) -> JobOptions:
        """The same under this name."""
        return replace(self, name=name)


NO_JOB_OPTIONS: Final = JobOptions()


def with_handling(declared: JobOptions, given: Mapping[str, Any], decorator: str) -> JobOptions:
    """A contract's options with those of the handler beside them.

    Raises:
        DeclarationError: see `job_options`.
    """
    own = job_options(given, decorator, contract=False)
    return replace(
        declared,
        limits=Defaults.merged(declared.limits, own.limits),
        retry_on=own.retry_on,
        fail_on=own.fail_on,
        upgrade=own.upgrade,
        process=own.process,
        memory_bytes_max=own.memory_bytes_max,
    )


def job_options(
    given: Mapping[str, Any], decorator: str, *, contract: bool = True, handling: bool = True
) -> JobOptions:
    """Check what a decorator was given: the options that a submit needs, or those of the handler, or both.

    Raises:
        DeclarationError: an option is unknown, of the wrong type or out of range.
    """
    known = (CONTRACT_NAMES if contract else frozenset()) | (HANDLING_NAMES if handling else frozenset())
    _refuse_unknown(given, known, decorator, DeclarationError, offered=contract)
    try:
        limits = Defaults(**{name: given[name] for name in JOB_LIMITS if name in given})
        args_version = given.get("args_version", 1)
        check_number("args_version", args_version, 1, ARGS_VERSION_MAX)
        turns = turn_options(given)
        refuse_unfit_turns(turns)
        of_wings = said_of(given)
        agreed({}, of_wings, SubmitKind(""))  # they must fit as they stand
    except (ConfigError, InvalidInput) as error:
        raise DeclarationError(error.what, error.why, error.fix) from None
    return JobOptions(
        name=given.get("name"),
        queue=given.get("queue"),
        limits=limits,
        retry_on=given.get("retry_on", ()),
        fail_on=given.get("fail_on", ()),
        key_lifetime_s=_checked_key_lifetime(given.get("key_lifetime_s"), DeclarationError),
        turns=turns,
        of_wings=of_wings,
        payload_bytes_max=given.get("payload_bytes_max"),
        args_version=args_version,
        upgrade=_checked_upgrade(given.get("upgrade")),
        process=_checked_process(given.get("process")),
        memory_bytes_max=_checked_memory(given.get("memory_bytes_max"), given.get("process")),
    )


def _checked_process(process: Any) -> bool | None:
    if process is not None and not isinstance(process, bool):
        raise DeclarationError(
            f"process is {shown(process)}", "True, False or nothing is expected", "correct process"
        )
    return process


def _checked_memory(memory_bytes_max: Any, process: Any) -> int | None:
    """The limit holds for the address space, of which the interpreter and its libraries take a good part."""
    if memory_bytes_max is None:
        return None
    if not process:
        raise DeclarationError(
            "memory_bytes_max was given without process=True",
            "only a process of its own can have a memory limit",
            "add process=True",
        )
    try:
        check_number("memory_bytes_max", memory_bytes_max, MEMORY_BYTES_MIN, 2**50)
    except ConfigError as error:
        raise DeclarationError(error.what, error.why, error.fix) from None
    return int(memory_bytes_max)


def _checked_upgrade(upgrade: Any) -> Upgrade | None:
    if upgrade is not None and not callable(upgrade):
        raise DeclarationError(
            f"upgrade is of type {type(upgrade).__name__}",
            "it is called with the stored version and the arguments as JSON data, and returns the new ones",
            "pass a function of two parameters",
        )
    return upgrade  # type: ignore[no-any-return]
