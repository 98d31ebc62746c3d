"""Options of jobs and of submits that wings offer, beside those of the core.

What they say is kept as the wing has it, with a declaration and with each `using`, and becomes a term of the job
(`NewJob.terms`), which the wing writes where jobs are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencerow.core.model.codec import ArgumentsCodec
    from fencerow.core.model.defaults import Defaults


class Options(ABC):
    """What the options of one wing mean. What is `said` is whatever the wing makes of them."""

    @abstractmethod
    def said(self, given: Mapping[str, Any]) -> Any:
        """What these options say, checked; None: nothing, False: not at all, whatever the declaration says.

        Raises:
            InvalidInput, ConfigError: one of them cannot be used.
        """

    def over(self, own: Any, below: Any) -> Any:
        """What `using` says, over what the declaration says. Either may be None."""
        return below if own is None else own

    def functions(self, said: Any) -> Iterator[tuple[str, object]]:  # noqa: ARG002 - for those that have some
        """The user's functions that compute something from the arguments of a submit, each with the option's name."""
        return iter(())

    def refuse(self, said: Any, limits: Defaults) -> None:  # noqa: B027 - many fit everything
        """Refuse what does not fit the job's other options.

        Raises:
            InvalidInput: it does not.
        """

    @abstractmethod
    def term(self, said: Any, args: bytes, arguments: ArgumentsCodec) -> Any:
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
    said: Any

    def term(self, args: bytes, arguments: ArgumentsCodec) -> Any:
        """See `Options.term`."""
        return self.options.term(self.said, args, arguments)


def agreed(own: Mapping[str, Any], below: Mapping[str, Any]) -> tuple[Agreed, ...]:
    """What `using` says, over what the declaration says; nothing of wings of which nothing is left."""
    if not own and not below:
        return ()
    found = []
    for wing, each in _offers.items():
        if wing in own or wing in below:
            said = each.options.over(own.get(wing), below.get(wing))
            if said is not None and said is not False:
                found.append(Agreed(wing, each.options, said))
    return tuple(found)
