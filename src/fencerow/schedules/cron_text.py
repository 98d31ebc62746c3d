"""Reading a cron expression: what is wrong with it, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from fencerow.schedules.errors import InvalidSchedule

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = (
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L (the last one) or LW (the last weekday)"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of the week", "0 to 7 or SUN to SAT, 5L (the last Friday) or MON#2 (the second Monday)"),
)
FORM = "five fields: minute, hour, day of the month, month, day of the week; a sixth in front is the second"
LENGTH_MAX = 200
A_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 a wall time; what fires at all fires within 50 years from it


@dataclass(frozen=True, slots=True)
class _Field:
    index: int  # in FIELDS
    text: str
    column: int  # from 1


def checked(text: str) -> str:
    """The expression with single spaces and without aliases. Raises InvalidSchedule with the place of the fault."""
    if len(text) > LENGTH_MAX:
        raise InvalidSchedule(f"a cron expression of {len(text)} characters", f"at most {LENGTH_MAX}", FORM)
    stripped = text.strip()
    if stripped.startswith("@"):
        return _alias(stripped)
    fields = _fields(text)
    for field in fields:
        _check(text, field)
    expression = " ".join(field.text for field in fields)
    _check_that_it_fires(expression)
    return expression


def _alias(text: str) -> str:
    found = ALIASES.get(text.casefold())
    if found is not None:
        return found
    if text.casefold().startswith("@every"):
        fix = "give interval_s=, or rate= with per="
    else:
        fix = f"the names are {', '.join(ALIASES)}"
    raise InvalidSchedule(f"no such name in cron: {text!r}", "a name stands for a whole expression", fix)


def _fields(text: str) -> list[_Field]:
    found = [(match.group(), match.start() + 1) for match in re.finditer(r"\S+", text)]
    if len(found) not in (5, 6):
        count = f"{len(found)} field{'' if len(found) == 1 else 's'}"
        raise InvalidSchedule(f"cron {text!r} has {count}", "expected five or six", FORM)
    skip = 6 - len(found)
    return [_Field(number + skip, each, column) for number, (each, column) in enumerate(found)]


def _check(text: str, field: _Field) -> None:
    """Each term alone, so that the message can point at it."""
    column = field.column
    for term in field.text.split(","):
        if not (term and _fits(field.index, term)):
            name, expected = FIELDS[field.index]
            what = f"cron {text!r} is wrong at column {column}: {term!r} is no {name}"
            why = f"expected {expected}, *, a range as 1-5, a step as */10, or several with commas"
            raise InvalidSchedule(what, why, FORM)
        column += len(term) + 1


def _fits(index: int, term: str) -> bool:
    from cronsim import CronSim, CronSimError

    parts = ["*"] * len(FIELDS)
    parts[index] = term
    try:
        CronSim(" ".join(parts), A_DAY)
    except (CronSimError, ValueError, AssertionError):
        return False
    return True


def _check_that_it_fires(expression: str) -> None:
    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(expression, A_DAY))
    except (StopIteration, CronSimError):
        why = "no day of the next 50 years fits the day, the month and the day of the week together"
        raise InvalidSchedule(
            f"cron {expression!r} never fires", why, "correct the day or the month"
        ) from None
