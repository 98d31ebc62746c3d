"""What people choose by, checked at the door: states as their names or as members, how many, which lists are lists."""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import StrEnum
from typing import Any, TypeVar

from fencerow.core.errors import InvalidInput

LIMIT_MAX = 10_000

K = TypeVar("K", bound=StrEnum)


def members(kind: type[K], given: object, what: str) -> tuple[K, ...]:
    """The members that were given, as such or by their names; none if nothing was.

    Raises:
        InvalidInput: it is one text and no list of them, or names something else.
    """
    return tuple(member(kind, each, what) for each in sequence(given, what))


def member(kind: type[K], given: object, what: str) -> K:
    """The member that was given, as such or by its name.

    Raises:
        InvalidInput: there is no such member.
    """
    if isinstance(given, str) and given in set(kind):
        return kind(given)
    known = ", ".join(each.value for each in kind)
    raise InvalidInput(f"{what} has {_shown(given)}", f"known are {known}", "name one of these")


def sequence(given: object, what: str) -> tuple[Any, ...]:
    """What was given, if it is a list; one text would pass for the list of its letters.

    Raises:
        InvalidInput: it is one text, or no list at all.
    """
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, (Sequence, Set)):
        raise InvalidInput(f"{what} is {_shown(given)}", "a list is expected", f"pass {what}=[...]")
    return tuple(given)


def limited(limit: object, what: str = "limit") -> int:
    """How many are asked for.

    Raises:
        InvalidInput: it is no whole number from 1 to `LIMIT_MAX`.
    """
    if isinstance(limit, int) and not isinstance(limit, bool) and 1 <= limit <= LIMIT_MAX:
        return limit
    raise InvalidInput(f"{what} is {_shown(limit)}", f"1 to {LIMIT_MAX} are listed", f"correct {what}")


def _shown(given: object) -> str:
    if isinstance(given, str):
        return ascii(given)[:60]
    return repr(given) if isinstance(given, int) else f"of type {type(given).__name__}"
