"""The one check of calls that do not fit: what was found, what is expected, and our word for another system's.

It is asked only when a call went wrong, so a good call pays nothing for it. Python has refused a call of a function
with named parameters; who takes options as a mapping asks `refuse_unknown`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from fencerow.core.errors import WrongCall
from fencerow.core.model.habits import words_of_others
from fencerow.core.model.signature import name_of

NEAR: Final = 0.8  # of two words, from 0 to 1: a letter or two are other ones, are missing, or changed places
NEARER: Final = 0.9
BEGUN: Final = 3  # so many letters are the beginning of a word


def refuse_unknown(
    given: Iterable[str],
    known: Collection[str],
    who: str,
    elsewhere: Mapping[str, tuple[str, str]] | None = None,
) -> None:
    """Refuse options that `who` does not have. `elsewhere`: why ours are not to be given here, and what to write.

    Raises:
        WrongCall: there is one.
    """
    for name in given:
        if name not in known:
            raise unknown_name(name, known, who, elsewhere or {})


def unknown_name(
    name: str, known: Collection[str], who: str, elsewhere: Mapping[str, tuple[str, str]]
) -> WrongCall:
    """The error for one argument that is not known."""
    return WrongCall(f"{who} was given {ascii(name)[:60]}", *_meant(name, sorted(known), elsewhere))


def misfit(
    called: Callable[..., Any], who: str, given: Sequence[object], named: Mapping[str, object]
) -> WrongCall | None:
    """The error for arguments with which this cannot be called; None if they fit, and what it did went wrong.

    `given` begins with the object, if it is a method.
    """
    parameters = inspect.signature(called).parameters.values()
    plain = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    by_place = [each.name for each in plain if each.kind is not each.KEYWORD_ONLY]
    by_name = [each.name for each in plain if each.kind is not each.POSITIONAL_ONLY and each.name != "self"]
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        for name in named:
            if name not in by_name:
                return unknown_name(name, by_name, who, {})
    for name in named:
        if name in by_name and name in by_place[: len(given)]:
            return WrongCall(
                f"{who} was given {name} twice", "once by its place, once by its name", f"pass {name} once"
            )
    if len(given) > len(by_place) and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        apart = [each for each in by_name if each not in by_place]
        return WrongCall(
            f"{who} was given {len(given) - by_place.count('self')} arguments without a name",
            f"without names it takes {', '.join(_but_self(by_place)) or 'none'}",
            f"pass {', '.join(apart)} by name" if apart else "leave out the others",
        )
    lacking = [
        each.name
        for each in plain
        if each.default is each.empty and each.name not in named and each.name not in by_place[: len(given)]
    ]
    if not lacking:
        return None
    return WrongCall(
        f"{who} was not given {', '.join(lacking)}", f"it takes {', '.join(by_name)}", "pass what is missing"
    )


def name_of_call(called: Callable[..., Any], given: Sequence[object]) -> str:
    """How a program calls it: `Retry()` for the `__init__` of a new one, `list_jobs()` for a verb."""
    name = name_of(called).rpartition(".")[2]
    return f"{type(given[0]).__name__ if name == '__init__' else name}()"


def _meant(name: str, known: Sequence[str], elsewhere: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Why, and what to write: for the word itself, or for the nearest that is one of ours or of another system."""
    theirs = words_of_others()
    for word in (name, *_near(name, known, {*elsewhere, *theirs.all})):
        if word in known:
            return f"did you mean {word}?", "correct or remove it"
        if meant := elsewhere.get(word) or theirs.meant(word, known):
            return meant
    if not known:
        return "it takes nothing", "remove it"
    return f"it takes {', '.join(known)}", "correct or remove it"


def _near(name: str, known: Sequence[str], others: Collection[str]) -> list[str]:
    """What begins with it, what is spelt nearly so, and words of others in which a letter is wrong."""
    begun = [each for each in known if each.startswith(name) and len(name) >= BEGUN]
    ours = difflib.get_close_matches(name, known, cutoff=NEAR)
    return [*begun, *ours, *difflib.get_close_matches(name, others, cutoff=NEARER)]


def _but_self(names: Sequence[str]) -> list[str]:
    return [each for each in names if each != "self"]
