"""What a job waits for, said once or computed from the arguments of each submit: turns of its exclusive key and its
limits, or a worker with a label; and whose it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fencerow.core.errors import DeclarationError, FencerowError, InvalidInput
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.defaults import DAY_S, check_number
from fencerow.core.model.seconds import in_seconds
from fencerow.core.model.text import check_text
from fencerow.core.model.worker_labels import check_label

KEY_LENGTH_MAX: Final = 256
OWN_KEYS: Final = "fencerow:"  # how keys begin that Fencerow itself gives, so that none of a user meets them
LIMIT_LENGTH_MAX: Final = 301  # a name, a slash and a key
LIMITS_MAX: Final = 10
AT_ONCE_MAX: Final = 1_000_000
AFFINITY_WAIT_S_MIN: Final = 0.001
AFFINITY_WAIT_S_MAX: Final = 3650 * DAY_S
TurnOption = str | Callable[..., str | None]
LimitsOption = TurnOption | Sequence[TurnOption]


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What was said of a job's turns, by its declaration or by `using`. None: nothing was said."""

    key: TurnOption | None = None
    at_once: int | None = None
    strict: bool | None = None
    limits: tuple[TurnOption, ...] | None = None
    share: TurnOption | None = None
    affinity: TurnOption | None = None
    affinity_wait_s: float | None = None

    @property
    def needed(self) -> bool:
        """Whether a job may need a turn."""
        return self.key is not None or bool(self.limits)

    def over(self, below: TurnOptions) -> TurnOptions:
        """This, and what it does not say as `below` says it."""
        return TurnOptions(
            below.key if self.key is None else self.key,
            below.at_once if self.at_once is None else self.at_once,
            below.strict if self.strict is None else self.strict,
            below.limits if self.limits is None else self.limits,
            below.share if self.share is None else self.share,
            below.affinity if self.affinity is None else self.affinity,
            below.affinity_wait_s if self.affinity_wait_s is None else self.affinity_wait_s,
        )


NO_TURNS: Final = TurnOptions()


def turn_options(given: Mapping[str, Any]) -> TurnOptions:
    """What the options say of turns.

    Raises:
        InvalidInput, ConfigError: one of them cannot be used.
    """
    key: TurnOption | None = given.get("exclusive")
    at_once, strict, limits = given.get("exclusive_at_once"), given.get("strict"), given.get("limits")
    share: TurnOption | None = given.get("share")
    affinity: TurnOption | None = given.get("affinity")
    wait_s = in_seconds(given.get("affinity_wait_s"))
    if all(each is None for each in (key, at_once, strict, limits, share, affinity, wait_s)):
        return NO_TURNS
    if share is not None and not callable(share):
        check_text(share, "share", KEY_LENGTH_MAX)
    if isinstance(key, str) or (key is not None and not callable(key)):
        _check_key(key, "exclusive")
    if at_once is not None:
        check_number("exclusive_at_once", at_once, 1, AT_ONCE_MAX)
    if strict is not None and not isinstance(strict, bool):
        raise InvalidInput(
            f"strict is of type {type(strict).__name__}", "True or False is expected", "correct strict"
        )
    if affinity is not None and not callable(affinity):
        check_label(affinity, "affinity")
    if wait_s is not None:
        check_number("affinity_wait_s", wait_s, AFFINITY_WAIT_S_MIN, AFFINITY_WAIT_S_MAX)
    named = None if limits is None else _limits(limits)
    return TurnOptions(key, at_once, strict, named, share, affinity, wait_s)


def _limits(given: Any) -> tuple[TurnOption, ...]:
    """The limits that were named; one may stand alone."""
    if isinstance(given, str) or callable(given):
        given = (given,)
    if not isinstance(given, Sequence) or len(given) > LIMITS_MAX:
        found = (
            f"names {len(given)} limits"
            if isinstance(given, Sequence)
            else f"is of type {type(given).__name__}"
        )
        raise InvalidInput(
            f"limits= {found}",
            f"at most {LIMITS_MAX} names are expected, or functions of the job's arguments that give them",
            'pass limits=("github",)',
        )
    for each in given:
        if not callable(each):
            check_text(each, "a name in limits=", LIMIT_LENGTH_MAX)
    return tuple(given)


def key_of(turns: TurnOptions, args: bytes, arguments: ArgumentsCodec) -> str | None:
    """The exclusive key of a submit with these arguments; None: it has none.

    Raises:
        InvalidInput: the user's function failed, or gave something else.
    """
    if not callable(turns.key):
        return turns.key
    found = computed(turns.key, "exclusive", args, arguments)
    return None if found is None else _check_key(found, "the exclusive key")


def _check_key(value: object, what: str) -> str:
    key = check_text(value, what, KEY_LENGTH_MAX)
    if key.startswith(OWN_KEYS):
        raise InvalidInput(
            f"{what} is {key[:60]!r}",
            f"keys that begin with {OWN_KEYS} are given by Fencerow itself",
            "choose a key that begins otherwise",
        )
    return key


def limits_of(turns: TurnOptions, args: bytes, arguments: ArgumentsCodec) -> tuple[str, ...] | None:
    """The limits that a submit with these arguments names, each once; None: it names none.

    Raises:
        InvalidInput: a function of the user's failed, or gave something else.
    """
    named: dict[str, None] = {}
    for each in turns.limits or ():
        name = computed(each, "limits", args, arguments) if callable(each) else each
        if name is not None:
            named[check_text(name, "the name of a limit", LIMIT_LENGTH_MAX)] = None
    return tuple(named) or None


def share_of(turns: TurnOptions, args: bytes, arguments: ArgumentsCodec) -> str | None:
    """Whose a submit with these arguments is; None: it is in no share.

    Raises:
        InvalidInput: the user's function failed, or gave something else.
    """
    if not callable(turns.share):
        return turns.share
    found = computed(turns.share, "share", args, arguments)
    return None if found is None else check_text(found, "the share", KEY_LENGTH_MAX)


def label_of(turns: TurnOptions, args: bytes, arguments: ArgumentsCodec) -> str | None:
    """The label that a worker must carry to take a submit with these arguments; None: anybody takes it.

    Raises:
        InvalidInput: the user's function failed, or gave something else.
    """
    if not callable(turns.affinity):
        return turns.affinity
    found = computed(turns.affinity, "affinity", args, arguments)
    return None if found is None else check_label(found, "the label in affinity=")


def computed(function: Callable[..., Any], option: str, args: bytes, arguments: ArgumentsCodec) -> Any:
    """What a function of the user's makes of the arguments of a submit.

    Raises:
        InvalidInput: it failed.
    """
    positional, named = arguments.decode(args)
    for name, parameter in arguments.parameters.items():
        if not parameter.required and not parameter.positional_only:
            named.setdefault(name, parameter.default)
    try:
        return function(*positional, **named)
    except Exception as error:
        if isinstance(error, FencerowError):
            raise
        raise InvalidInput(
            f"the function in {option}= of {arguments.name} raised {type(error).__name__}",
            "it is called with the arguments of each submit, and nothing was stored",
            "correct the function, or return None for arguments that it has nothing to say of",
        ) from error


def refuse_unfit_turns(turns: TurnOptions) -> None:
    """Slots and strictness are those of a key, and a wait that of a label.

    Raises:
        InvalidInput: there is no key, or no label.
    """
    if turns.affinity is None and turns.affinity_wait_s is not None:
        raise InvalidInput(
            "affinity_wait_s was given without affinity",
            "it says how long a job waits for a worker with its label",
            "add affinity=",
        )
    if turns.key is None and (turns.at_once is not None or turns.strict is not None):
        raise InvalidInput(
            "exclusive_at_once or strict was given without exclusive",
            "they say how many jobs of a key run at once, and whether a retry keeps the turn",
            "add exclusive=",
        )


def refuse_other_parameters(turns: TurnOptions, arguments: ArgumentsCodec, decorator: str) -> None:
    """Functions that compute a key, a limit, a share or a label take what the job takes.

    Raises:
        DeclarationError: one cannot be called so.
    """
    given = {
        "exclusive": (turns.key,),
        "limits": turns.limits or (),
        "share": (turns.share,),
        "affinity": (turns.affinity,),
    }
    for option, functions in given.items():
        for function in functions:
            refuse_unfit(function, option, arguments, decorator)


def refuse_unfit(function: object, option: str, arguments: ArgumentsCodec, decorator: str) -> None:
    """Make sure that a function in an option, if it is one, can be called with the job's arguments.

    Raises:
        DeclarationError: it cannot.
    """
    if not callable(function):
        return
    positional = [None for each in arguments.parameters.values() if each.positional_only]
    named = {name: None for name, each in arguments.parameters.items() if not each.positional_only}
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError as error:
        raise DeclarationError(
            f"the function in {option}= of {arguments.name} cannot be called with the job's arguments: {error}",
            f"{decorator} calls it by the names {', '.join(arguments.parameters) or '(none)'}",
            "give it these parameters, or **others for those that it does not need",
        ) from None
    except ValueError:  # a function written in C, whose parameters nobody knows
        return
