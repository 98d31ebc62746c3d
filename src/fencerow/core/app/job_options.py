"""Options of a job, checked where they are written: what a submit needs, and what only the running code needs.

A job that is declared apart from its handler divides them so (`fencerow/contracts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypedDict

from fencerow.core.app.options import NOWHERE_ELSE, checked_key_lifetime, refuse_unknown_options
from fencerow.core.errors import ConfigError, DeclarationError, InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.codec import Upgrade
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.retry import Matchers
from fencerow.core.model.seconds import Seconds
from fencerow.core.offered import SubmitKind, agreed, said_of
from fencerow.db.numbers import check_number
from fencerow.db.text import shown

BackoffOption = Backoff | Callable[[int], float]
ARGS_VERSION_MAX: Final = 1_000_000
# What a child needs before it runs anything: 135 MiB of addresses at rest, 200 MiB while it starts.
MEMORY_BYTES_MIN: Final = 256 * 1024 * 1024
JOB_LIMITS: Final = tuple(each.name for each in fields(Defaults))


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
    of_wings: Mapping[str, Any] = field(default_factory=dict)  # what their options say, by their names
    payload_bytes_max: int | None = None
    args_version: int = 1
    upgrade: Upgrade | None = None
    process: bool | None = None
    memory_bytes_max: int | None = None


NO_JOB_OPTIONS: Final = JobOptions()


def job_options(
    given: Mapping[str, Any],
    decorator: str,
    *,
    known: frozenset[str] = CONTRACT_NAMES | HANDLING_NAMES,
    offered: bool = True,
    elsewhere: Mapping[str, tuple[str, str]] = NOWHERE_ELSE,
) -> JobOptions:
    """Check what a decorator was given that knows these options. `offered`, `elsewhere`: see `refuse_unknown_options`.

    Raises:
        WrongCall: an option is unknown. DeclarationError: one is of the wrong type or out of range.
    """
    refuse_unknown_options(given, known, decorator, offered=offered, elsewhere=elsewhere)
    try:
        limits = Defaults(**{name: given[name] for name in JOB_LIMITS if name in given})
        args_version = given.get("args_version", 1)
        check_number("args_version", args_version, 1, ARGS_VERSION_MAX)
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
        key_lifetime_s=checked_key_lifetime(given.get("key_lifetime_s"), DeclarationError),
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
