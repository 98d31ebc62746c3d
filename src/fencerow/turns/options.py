"""The options of turns: the key and the limits under which a job runs, whose it is, and the label that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypedDict

from fencerow.core.app.from_arguments import computed
from fencerow.core.errors import InvalidInput
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.defaults import DAY_S
from fencerow.core.model.handler import Handler
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.worker_labels import check_label
from fencerow.core.offered import ColumnOf, Options
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text

KEY_LENGTH_MAX: Final = 256
OWN_KEYS: Final = "fencerow:"  # how keys begin that Fencerow itself gives, so that none of a user meets them
LIMIT_LENGTH_MAX: Final = 301  # a name, a slash and a key
LIMITS_MAX: Final = 10
AT_ONCE_MAX: Final = 1_000_000
AFFINITY_WAIT_S_MIN: Final = 0.001
AFFINITY_WAIT_S_MAX: Final = 3650 * DAY_S
TurnOption = str | Callable[..., str | None]
LimitsOption = TurnOption | Sequence[TurnOption]


class GivenTurns(TypedDict, total=False):
    """The options of a job, and of `using`, that say what it waits for, and whose it is."""

    exclusive: TurnOption | None  # the key of which one job runs at a time, or a function of the arguments
    exclusive_at_once: int | None  # not one, but so many
    strict: bool | None  # a retry keeps its turn, so that nobody of its key goes first
    limits: LimitsOption | None  # the limits under which it runs, or functions of the arguments
    share: TurnOption | None  # whose it is: the shares of a queue take turns; or a function of the arguments
    affinity: (
        TurnOption | None
    )  # the label that a worker must carry to take it, or a function of the arguments
    affinity_wait_s: Seconds | None  # from when it is due; then anybody may take it. Without it: never


@dataclass(frozen=True, slots=True)
class SaidOfTurns:
    """What was said of a job's turns, by its declaration or by `using`. None: nothing was said."""

    key: TurnOption | None = None
    at_once: int | None = None
    strict: bool | None = None
    limits: tuple[TurnOption, ...] | None = None
    share: TurnOption | None = None
    affinity: TurnOption | None = None
    affinity_wait_s: float | None = None

    def over(self, below: SaidOfTurns) -> SaidOfTurns:
        """This, and what it does not say as `below` says it."""
        return SaidOfTurns(
            below.key if self.key is None else self.key,
            below.at_once if self.at_once is None else self.at_once,
            below.strict if self.strict is None else self.strict,
            below.limits if self.limits is None else self.limits,
            below.share if self.share is None else self.share,
            below.affinity if self.affinity is None else self.affinity,
            below.affinity_wait_s if self.affinity_wait_s is None else self.affinity_wait_s,
        )

    @property
    def is_empty(self) -> bool:
        """Whether a job of which no more is said is as any other."""
        return self.key is None and not self.limits and self.share is None and self.affinity is None


class TurnOptions(Options):
    """What the options of turns mean: columns of the job, which claims and hand-overs read."""

    def said(self, given: Mapping[str, Any]) -> SaidOfTurns | None:
        """What the options say of turns; None: nothing.

        Raises:
            InvalidInput, ConfigError: one of them cannot be used.
        """
        return said_of_turns(given)

    def over(self, own: SaidOfTurns | None, below: SaidOfTurns | None) -> SaidOfTurns | None:
        """What `using` says, over what the declaration says."""
        if own is None or below is None:
            return below if own is None else own
        return own.over(below)

    def agree(self, said: SaidOfTurns, submits: object) -> SaidOfTurns | None:  # noqa: ARG002 - whatever they are
        """The same; None: such a submit is as any other.

        Raises:
            InvalidInput: slots or strictness are said without a key, or a wait without a label.
        """
        _refuse_unfit(said)
        return None if said.is_empty else said

    def functions(self, said: SaidOfTurns) -> Iterator[tuple[str, object]]:
        """Those that compute a key, a limit, a share or a label."""
        yield "exclusive", said.key
        for each in said.limits or ():
            yield "limits", each
        yield "share", said.share
        yield "affinity", said.affinity

    def alike(self, agreed: SaidOfTurns) -> Mapping[str, Any]:
        """How many of the key run at once, whether a retry keeps the turn, how long the label is waited for."""
        return {
            "exclusive_at_once": agreed.at_once,
            "strict": bool(agreed.strict),
            "affinity_wait_s": agreed.affinity_wait_s,
        }

    def columns(self, agreed: SaidOfTurns) -> Mapping[str, ColumnOf]:
        """The key, the limits, the share and the label of a job with some arguments."""
        found: dict[str, ColumnOf] = {}
        if agreed.key is not None:
            found["exclusive"] = partial(_text_of, agreed.key, "exclusive", _checked_key)
        if agreed.limits:
            found["limits"] = partial(_limits_of, agreed.limits)
        if agreed.share is not None:
            found["share"] = partial(_text_of, agreed.share, "share", _checked_share)
        if agreed.affinity is not None:
            found["affinity"] = partial(_text_of, agreed.affinity, "affinity", _checked_label)
        return found

    def term(self, agreed: SaidOfTurns, args: bytes, handler: Handler) -> None:
        """None: all of it stands in columns of the job."""


def said_of_turns(given: Mapping[str, Any]) -> SaidOfTurns | None:
    """What the options say of turns; None: nothing.

    Raises:
        InvalidInput, ConfigError: one of them cannot be used.
    """
    key: TurnOption | None = given.get("exclusive")
    at_once, strict, limits = given.get("exclusive_at_once"), given.get("strict"), given.get("limits")
    share: TurnOption | None = given.get("share")
    affinity: TurnOption | None = given.get("affinity")
    wait_s = in_seconds(given.get("affinity_wait_s"))
    if all(each is None for each in (key, at_once, strict, limits, share, affinity, wait_s)):
        return None
    if share is not None and not callable(share):
        check_text(share, "share", KEY_LENGTH_MAX)
    if key is not None and not callable(key):
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
    named = None if limits is None else _named_limits(limits)
    return SaidOfTurns(key, at_once, strict, named, share, affinity, wait_s)


def _named_limits(given: Any) -> tuple[TurnOption, ...]:
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


def _refuse_unfit(said: SaidOfTurns) -> None:
    if said.affinity is None and said.affinity_wait_s is not None:
        raise InvalidInput(
            "affinity_wait_s was given without affinity",
            "it says how long a job waits for a worker with its label",
            "add affinity=",
        )
    if said.key is None and (said.at_once is not None or said.strict is not None):
        raise InvalidInput(
            "exclusive_at_once or strict was given without exclusive",
            "they say how many jobs of a key run at once, and whether a retry keeps the turn",
            "add exclusive=",
        )


def _text_of(
    said: TurnOption, option: str, check: Callable[[object], str], args: bytes, arguments: ArgumentsCodec
) -> str | None:
    """What was said, or what the user's function gives for these arguments.

    Raises:
        InvalidInput: the function failed, or gave something else.
    """
    if not callable(said):
        return said
    found = computed(said, option, args, arguments)
    return None if found is None else check(found)


def _limits_of(
    said: tuple[TurnOption, ...], args: bytes, arguments: ArgumentsCodec
) -> tuple[str, ...] | None:
    """The limits that a submit with these arguments names, each once; None: it names none.

    Raises:
        InvalidInput: a function of the user's failed, or gave something else.
    """
    named: dict[str, None] = {}
    for each in said:
        name = computed(each, "limits", args, arguments) if callable(each) else each
        if name is not None:
            named[check_text(name, "the name of a limit", LIMIT_LENGTH_MAX)] = None
    return tuple(named) or None


def _checked_key(found: object) -> str:
    return _check_key(found, "the exclusive key")


def _checked_share(found: object) -> str:
    return check_text(found, "the share", KEY_LENGTH_MAX)


def _checked_label(found: object) -> str:
    return check_label(found, "the label in affinity=")


def _check_key(value: object, what: str) -> str:
    key = check_text(value, what, KEY_LENGTH_MAX)
    if key.startswith(OWN_KEYS):
        raise InvalidInput(
            f"{what} is {key[:60]!r}",
            f"keys that begin with {OWN_KEYS} are given by Fencerow itself",
            "choose a key that begins otherwise",
        )
    return key
