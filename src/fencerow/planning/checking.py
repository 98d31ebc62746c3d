"""Numbers and texts of a plan, each with its place, where they are out of range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from fencerow.core.errors import FencerowError
from fencerow.core.model.seconds import is_finite
from fencerow.db.text import check_text, shown
from fencerow.planning.errors import InvalidPlan
from fencerow.planning.formulas import exact

TIME_S_MAX = 10 * 366 * 86_400.0


@contextmanager
def placed(where: str) -> Iterator[None]:
    """What is refused within is an error of the plan, at this place."""
    try:
        yield
    except FencerowError as error:
        raise InvalidPlan(f"{where}: {error.what}", error.why, error.fix) from None


def checked_text(value: str, what: str, length_max: int) -> str:
    """A name."""
    with placed("the plan"):
        return check_text(value, what, length_max)


def whole(value: int, what: str, least: int, most: int) -> int:
    """A number of things."""
    if not least <= value <= most:
        raise InvalidPlan(
            f"{what} is {shown(value)}", f"a whole number from {least} to {most} is expected", "correct it"
        )
    return value


def seconds(value: float, what: str, *, least: float = 1e-6) -> Fraction:
    """A length of time."""
    if not is_finite(value) or not least <= value <= TIME_S_MAX:
        raise InvalidPlan(
            f"{what} is {shown(value)}", f"seconds are expected, from {least:g} to ten years", "correct it"
        )
    return exact(value)


def share(value: float, what: str) -> Fraction:
    """A part of all attempts, less than all of them."""
    if not 0 <= value < 1:
        raise InvalidPlan(
            f"{what} is {shown(value)}",
            "a share of attempts is expected, from 0 to less than 1",
            "correct it",
        )
    return exact(value)
