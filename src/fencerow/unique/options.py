"""What is said of unique jobs: what makes two submits the same, and what becomes of the second one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypedDict, get_args

from fencerow.core.app.from_arguments import computed
from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.defaults import DAY_S, Defaults
from fencerow.core.model.handler import Handler
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.state import State
from fencerow.core.offered import Options, SubmitKind
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text, shown
from fencerow.unique.rules import LIVE_STATES, UniqueClaim, UniqueRule, in_one_order

UNIQUE_LENGTH_MAX: Final = 256
UNIQUE_S_MAX: Final = 3650 * DAY_S
By = bool | str | Callable[..., str | None]
OnConflict = Literal["keep", "replace"]


@dataclass(frozen=True, slots=True)
class Unique:
    """What makes submits the same, and what becomes of those that come later.

    `by`: True for the name of the job and all its arguments, a text, or a function of the job's arguments that gives
    a text, or None for a submit that is like no other. A key is the job's own unless a `scope` is given.

    A job counts while it is in one of `states`, by default until it has ended; with `period_s` it counts so long from
    its submit, whatever becomes of it. `on_conflict="replace"`: while no attempt of it has started, it takes over what
    the newest submit says.

    Raises:
        InvalidInput: these contradict each other, or one of them cannot be used.
    """

    by: By
    states: Sequence[str] | None = None
    period_s: Seconds | None = None
    on_conflict: OnConflict = "keep"
    scope: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by, str):
            check_text(self.by, "unique", UNIQUE_LENGTH_MAX)
        elif self.by is not True and not callable(self.by):
            raise InvalidInput(
                f"unique is {shown(self.by)}",
                "True, a text, or a function of the job's arguments is expected",
                "pass unique=True for one job of the same arguments at a time",
            )
        if self.scope is not None:
            check_text(self.scope, "scope", UNIQUE_LENGTH_MAX)
        if self.on_conflict not in get_args(OnConflict):
            raise InvalidInput(
                f"on_conflict is {shown(self.on_conflict)}",
                "'keep' or 'replace' is expected",
                "correct on_conflict",
            )
        _check_seconds("period_s", self.period_s)
        _check_states(self.states)
        if self.states is not None and self.period_s is not None:
            raise _both("states", "period_s", "a period counts whatever becomes of the job")
        if self.on_conflict == "replace" and self.states is not None:
            raise _both("on_conflict='replace'", "states", "only a job that has not started is replaced")
        if self.on_conflict == "replace" and self.period_s is not None:
            raise _both("on_conflict='replace'", "period_s", "only a job that has not started is replaced")


@dataclass(frozen=True, slots=True)
class SaidOfUnique:
    """What was said of unique jobs, by a declaration or by `using`. None: nothing was said; False: it is not unique."""

    unique: Unique | Literal[False] | None = None
    debounce_s: float | None = None
    debounce_max_s: float | None = None
    throttle_s: float | None = None

    def over(self, below: SaidOfUnique) -> SaidOfUnique:
        """This, and what it does not say as `below` says it."""
        if self is NOT_UNIQUE or self.unique is False:
            return below if self.unique is None else self
        return SaidOfUnique(
            below.unique if self.unique is None else self.unique,
            below.debounce_s if self.debounce_s is None else self.debounce_s,
            below.debounce_max_s if self.debounce_max_s is None else self.debounce_max_s,
            below.throttle_s if self.throttle_s is None else self.throttle_s,
        )


NOT_UNIQUE: Final = SaidOfUnique()


class GivenUnique(TypedDict, total=False):
    """The options of a job, and of `using`, that say how its submits are unique."""

    unique: By | Unique | None  # what makes submits the same, of which one stores a job; False: nothing
    debounce_s: Seconds | None  # the job is due so long after the last of the submits that are the same
    debounce_max_s: Seconds | None  # but so long after the first at the latest
    throttle_s: Seconds | None  # the first of them stores a job, and those of so many seconds after find it


@dataclass(frozen=True, slots=True)
class UniqueRecipe:
    """How the submits of a job are unique."""

    by: By
    scope: str
    rule: UniqueRule

    def claim_of(self, args: bytes, handler: Handler) -> UniqueClaim | None:
        """The key of a submit with these arguments; None: it is like no other.

        Raises:
            InvalidInput: the user's function failed, or gave something else.
        """
        if self.by is True:
            key = f"arguments:{handler.packing.fingerprint('', in_one_order(args))}"
        elif isinstance(self.by, str):
            key = self.by
        else:
            found = computed(self.by, "unique", args, handler.arguments)  # type: ignore[arg-type]
            if found is None:
                return None
            key = check_text(found, "what the function in unique= gave", UNIQUE_LENGTH_MAX)
        return UniqueClaim(scope=self.scope, key=key, rule=self.rule)


class UniqueOptions(Options):
    """What `unique=` and its seconds say of a job, as `SaidOfUnique`; what holds of its submits, as `UniqueRecipe`."""

    settles = True

    def said(self, given: Mapping[str, Any]) -> SaidOfUnique | None:
        """What these options say; None: nothing.

        Raises:
            InvalidInput: one of them cannot be used.
        """
        said = unique_options(given)
        return None if said is NOT_UNIQUE else said

    def over(self, own: SaidOfUnique | None, below: SaidOfUnique | None) -> SaidOfUnique:
        """What `using` says, and what it does not say as the declaration says it."""
        return (own or NOT_UNIQUE).over(below or NOT_UNIQUE)

    def agree(self, said: SaidOfUnique, submits: SubmitKind) -> UniqueRecipe | None:
        """The rule that they come to for such submits; None: they are not unique.

        Raises:
            InvalidInput: they contradict each other, or what else was said of the submit.
        """
        return unique_recipe(said, submits.name, key=submits.keyed, due=submits.due)

    def functions(self, said: SaidOfUnique) -> Iterator[tuple[str, object]]:
        """The one that computes the key."""
        if said.unique:
            yield "unique", said.unique.by

    def refuse(self, agreed: UniqueRecipe, limits: Defaults) -> None:
        """A job that leaves no row cannot count once it has succeeded.

        Raises:
            InvalidInput: it is to do so.
        """
        refuse_unique(agreed, ephemeral=bool(limits.ephemeral))

    def delay_s(self, agreed: UniqueRecipe) -> float | None:
        """How long a submit puts the job off."""
        return agreed.rule.put_off_s

    def may_replace(self, agreed: UniqueRecipe) -> bool:
        """Whether a submit may become what another one's job is."""
        return agreed.rule.replaces

    def term(self, agreed: UniqueRecipe, args: bytes, handler: Handler) -> dict[str, Any] | None:
        """The key of a submit with these arguments, and its rule; None: it is like no other.

        Raises:
            InvalidInput: the user's function failed, or gave something else.
        """
        claim = agreed.claim_of(args, handler)
        return None if claim is None else claim.term


def unique_options(given: Mapping[str, Any]) -> SaidOfUnique:
    """What the options say of unique jobs.

    Raises:
        InvalidInput: one of them cannot be used.
    """
    unique = given.get("unique")
    seconds = {name: given.get(name) for name in ("debounce_s", "debounce_max_s", "throttle_s")}
    if unique is None and all(each is None for each in seconds.values()):
        return NOT_UNIQUE
    for name, value in seconds.items():
        _check_seconds(name, value)
    if unique is not None and unique is not False and not isinstance(unique, Unique):
        unique = Unique(unique)
    return SaidOfUnique(unique, **{name: in_seconds(value) for name, value in seconds.items()})


def unique_recipe(options: SaidOfUnique, name: str, *, key: bool, due: bool) -> UniqueRecipe | None:
    """The rule that options come to, for submits of the job of this name.

    `key`: they have an idempotency key as well; `due`: they say themselves when the job is due.

    Raises:
        InvalidInput: the options contradict each other.
    """
    unique = options.unique
    if unique is None or unique is False:
        _refuse_alone(options, unique is False)
        return None
    rule = _rule(options, unique)
    if rule.replaces and key:
        raise _both(
            "key" if rule.put_off_s is None else "debounce_s",
            "on_conflict='replace'" if rule.put_off_s is None else "key",
            "a key stands for one payload for good, and here a later one takes its place",
        )
    if rule.put_off_s is not None and due:
        raise _both("debounce_s", "delay_s or run_at", "each says when the job is due")
    return UniqueRecipe(unique.by, unique.scope or name, rule)


def refuse_unique(recipe: UniqueRecipe, *, ephemeral: bool) -> None:
    """A job that leaves no row cannot count once it has succeeded.

    Raises:
        InvalidInput: it is to do so.
    """
    if ephemeral and State.SUCCEEDED.value in recipe.rule.states:
        raise InvalidInput(
            "an ephemeral job is to be unique while it is succeeded",
            "its success leaves nothing behind that a later submit could find",
            "name other states, use period_s, or leave ephemeral out",
        )


def _rule(options: SaidOfUnique, unique: Unique) -> UniqueRule:
    put_off_s, most_s, throttle_s = options.debounce_s, options.debounce_max_s, options.throttle_s
    period_s = in_seconds(unique.period_s)
    states = tuple(unique.states) if unique.states is not None else LIVE_STATES
    replaces = unique.on_conflict == "replace"
    if put_off_s is None and most_s is not None:
        raise InvalidInput(
            "debounce_max_s was given without debounce_s",
            "it bounds how long submits may put the job off",
            "add debounce_s",
        )
    if throttle_s is not None:
        if put_off_s is not None:
            raise _both("debounce_s", "throttle_s", "the one runs the last of a burst, the other the first")
        if period_s is not None or unique.states is not None or replaces:
            raise _both("throttle_s", "states, period_s or on_conflict", "it is a rule of its own")
        return UniqueRule(period_s=throttle_s)
    if put_off_s is None:
        return UniqueRule(states=states, period_s=period_s, replaces=replaces)
    if period_s is not None or unique.states is not None:
        raise _both("debounce_s", "states or period_s", "it is a rule of its own")
    if most_s is None or most_s < put_off_s:
        found = (
            "without debounce_max_s" if most_s is None else f"with debounce_max_s={most_s:g}, which is less"
        )
        raise InvalidInput(
            f"debounce_s={put_off_s:g} was given {found}",
            "submits that keep coming would put the job off for ever",
            "pass debounce_max_s: how long after the first submit the job is due at the latest",
        )
    return UniqueRule(replaces=True, put_off_s=put_off_s, put_off_max_s=most_s)


def _refuse_alone(options: SaidOfUnique, off: bool) -> None:
    if off and replace(options, unique=None) == NOT_UNIQUE:
        return
    named = [
        name for name in ("debounce_s", "debounce_max_s", "throttle_s") if getattr(options, name) is not None
    ]
    if named:
        raise InvalidInput(
            f"{named[0]} was given {'with unique=False' if off else 'without unique'}",
            "it holds for submits that are the same, and nothing says which are",
            "add unique=True (the same arguments), or a function: unique=lambda order_id, **_: order_id",
        )


def _check_seconds(name: str, value: Seconds | None) -> None:
    if value is None:
        return
    try:
        check_number(name, in_seconds(value), 0.001, UNIQUE_S_MAX)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None


def _check_states(states: Any) -> None:
    if states is None:
        return
    known = [state.value for state in State]
    listed = isinstance(states, Sequence) and not isinstance(states, str)
    if not listed or not states or any(each not in known for each in states):
        raise InvalidInput(
            f"states is {ascii(states)[:80]}",
            f"some of {', '.join(known)} are expected",
            'pass states=("waiting", "queued") to count jobs until they start',
        )


def _both(one: str, other: str, why: str) -> InvalidInput:
    return InvalidInput(f"{one} was given together with {other}", why, f"leave out {one}, or {other}")
