"""Options of jobs and of submits that wings offer, beside those of the core.

What they say is kept as the wing has it, with a declaration and with each `using`. It becomes a term of the job
(`NewJob.terms`), which the wing writes where jobs are stored; or it stands in columns of the job that the core has for
it, because its statements read them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencerow.core.model.codec import ArgumentsCodec
    from fencerow.core.model.defaults import Defaults
    from fencerow.core.model.handler import Handler


# From the encoded arguments of a submit to what stands in a column of its job. It raises InvalidInput where a function
# of the user's failed, or gave something else.
ColumnOf = Callable[[bytes, "ArgumentsCodec"], Any]


@dataclass(frozen=True, slots=True)
class SubmitKind:
    """What else is said of the submits of one job. `name`: the job's; `keyed`: they have an idempotency key; `due`:
    they say when the job is due."""

    name: str
    keyed: bool = False
    due: bool = False


class Options(ABC):
    """What the options of one wing mean. What is `said` is whatever the wing makes of them."""

    @abstractmethod
    def said(self, given: Mapping[str, Any]) -> Any:
        """What these options say, checked; None: nothing, False: not at all, whatever the declaration says.

        Raises:
            InvalidInput, ConfigError: one of them cannot be used.
        """

    settles = False  # whether its wing decides, before a job is stored, what a submit with its term comes to

    def over(self, own: Any, below: Any) -> Any:
        """What `using` says, over what the declaration says. Either may be None."""
        return below if own is None else own

    def agree(self, said: Any, submits: SubmitKind) -> Any:  # noqa: ARG002 - for those that depend on it
        """What holds of such submits; None: nothing. The methods below are told it.

        Raises:
            InvalidInput: what is said contradicts itself, or what else was said of the submits.
        """
        return said

    def functions(self, said: Any) -> Iterator[tuple[str, object]]:  # noqa: ARG002 - for those that have some
        """The user's functions that compute something from the arguments of a submit, each with the option's name."""
        return iter(())

    def refuse(self, agreed: Any, limits: Defaults) -> None:  # noqa: B027 - many fit everything
        """Refuse what does not fit the job's other options.

        Raises:
            InvalidInput: it does not.
        """

    def delay_s(self, agreed: Any) -> float | None:  # noqa: ARG002 - for those that say so
        """How long a submit puts the job off, whatever else was said; None: it does not."""
        return None

    def alike(self, agreed: Any) -> Mapping[str, Any]:  # noqa: ARG002 - for those with columns
        """What it says in columns that are the same in all jobs submitted so (`Template`), by their names."""
        return {}

    def columns(self, agreed: Any) -> Mapping[str, ColumnOf]:  # noqa: ARG002 - for those with columns
        """What it says in columns of a job (`NewJob`) that follow from its arguments, by their names."""
        return {}

    def may_replace(self, agreed: Any) -> bool:  # noqa: ARG002 - for those that settle
        """Whether what a submit says may come to stand in the row of another's job."""
        return False

    @abstractmethod
    def term(self, agreed: Any, args: bytes, handler: Handler) -> Any:
        """The term of a job with these arguments, as JSON data; None: it has none.

        Raises:
            InvalidInput: the user's function failed, or gave something else.
        """


@dataclass(frozen=True)
class Offer:
    """The options of one wing, by their names."""

    names: frozenset[str]
    make: Callable[[], Options]

    @cached_property
    def options(self) -> Options:
        """What they mean, loaded by the first who uses one."""
        return self.make()


_offers: dict[str, Offer] = {}


def offer(wing: str, offered: Offer) -> None:
    """Said once for each wing, when the package is imported."""
    _offers[wing] = offered


def offered_names() -> frozenset[str]:
    """The names of all options that wings offer."""
    return frozenset[str]().union(*(each.names for each in _offers.values()))


def said_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the options of wings say among these, by the wings' names; wings of which nothing is said are left out.

    Raises:
        InvalidInput, ConfigError: one of them cannot be used.
    """
    said: dict[str, Any] = {}
    for wing, each in _offers.items():
        if not each.names.isdisjoint(given):
            what = each.options.said(given)
            if what is not None:
                said[wing] = what
    return said


def functions_in(said: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The user's functions in what the options of wings say, each with the option's name."""
    for wing, what in said.items():
        yield from _offers[wing].options.functions(what)


@dataclass(frozen=True, slots=True)
class Agreed:
    """What holds for the submits of one job, of the options of one wing."""

    wing: str
    options: Options
    what: Any


def agreed(own: Mapping[str, Any], below: Mapping[str, Any], submits: SubmitKind) -> tuple[Agreed, ...]:
    """What `using` says, over what the declaration says; nothing of wings of which nothing is left.

    Raises:
        InvalidInput: what they say does not fit such submits.
    """
    if not own and not below:
        return ()
    found = []
    for wing, each in _offers.items():
        if wing in own or wing in below:
            said = each.options.over(own.get(wing), below.get(wing))
            if said is None or said is False:
                continue
            what = each.options.agree(said, submits)
            if what is not None:
                found.append(Agreed(wing, each.options, what))
    return tuple(found)


def alike_in(agreed_on: Sequence[Agreed]) -> dict[str, Any]:
    """What is said in columns that are the same in all jobs submitted so, by their names."""
    return {name: value for each in agreed_on for name, value in each.options.alike(each.what).items()}


def columns_in(agreed_on: Sequence[Agreed]) -> dict[str, ColumnOf]:
    """What is said in columns that follow from the arguments of a job, by their names."""
    return {name: column for each in agreed_on for name, column in each.options.columns(each.what).items()}
