"""Reading what a schedule says: each fault is an error with a code, before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction

import fencerow.calendar.zones as zones
import fencerow.schedules.cron_text as cron_text
from fencerow.core.model.seconds import is_finite
from fencerow.db.text import shown
from fencerow.schedules.cron import Cron
from fencerow.schedules.errors import InvalidSchedule
from fencerow.schedules.evenly import Evenly

SECOND_US = 1_000_000
RESOLUTION_US = SECOND_US
PERIOD_MAX_US = 3660 * 86_400 * SECOND_US
JITTER_MAX_US = 86_400 * SECOND_US
NUMBER_MAX = 10**9  # more seconds than any period has, and more fires than anybody makes in a day
WRITTEN = re.compile(
    r" *[+-]?[0-9.]{1,40} *(/ *[0-9]{1,40} *)?"
)  # with an exponent a short text is a long number
UNITS_S = {"minute": 60, "hour": 3600, "day": 86_400}
KINDS = {
    "cron": {"cron", "tz", "jitter_s"},
    "rate": {"rate", "per", "spread", "phase_s", "jitter_s"},
    "interval_s": {"interval_s", "spread", "phase_s", "jitter_s"},
}
Read = tuple[Cron | Evenly, int, dict[str, object]]


def read(document: Mapping[str, object]) -> Read:
    """The times, the jitter in microseconds, and the document in its one spelling."""
    given = {name: value for name, value in document.items() if value is not None}
    kind = _kind(given)
    unknown = sorted(given.keys() - KINDS[kind])
    if unknown:
        allowed = ", ".join(sorted(KINDS[kind]))
        raise InvalidSchedule(
            f"a schedule by {kind} has no {unknown[0]!r}", f"it may have {allowed}", "remove it"
        )
    times, said = _cron(given) if kind == "cron" else _evenly(kind, given)
    jitter_us = _jitter(given, times)
    if jitter_us:
        said["jitter_s"] = _seconds(jitter_us)
    return times, jitter_us, said


def _kind(given: Mapping[str, object]) -> str:
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1:
        what = f"a schedule says {' and '.join(kinds)}" if kinds else "a schedule does not say when it fires"
        fix = 'give cron="0 9 * * *", or rate=4 with per="hour", or interval_s=900'
        raise InvalidSchedule(what, "expected one of cron, rate and interval_s", fix)
    return kinds[0]


def _cron(given: Mapping[str, object]) -> tuple[Cron, dict[str, object]]:
    text, name = given["cron"], given.get("tz", "UTC")
    if not isinstance(text, str):
        raise InvalidSchedule(f"cron is {text!r}", "expected a text", cron_text.FORM)
    if not isinstance(name, str):
        raise InvalidSchedule(f"tz is {name!r}", "expected the name of a time zone", "such as Europe/Berlin")
    expression = cron_text.checked(text)
    return Cron(expression, name, zones.zone(name)), {"cron": expression, "tz": name}


def _evenly(kind: str, given: Mapping[str, object]) -> tuple[Evenly, dict[str, object]]:
    period, said = _by_rate(given) if kind == "rate" else _by_interval(given)
    if not RESOLUTION_US <= period <= PERIOD_MAX_US:
        # Fractions go beyond what a float can hold.
        long = "more than ten years" if period > PERIOD_MAX_US else f"{float(period / SECOND_US):g} s"
        limits = "expected at least 1 s, and at most ten years"
        raise InvalidSchedule(
            f"{kind} = {given[kind]!r} is {long} from fire to fire", limits, "correct the schedule"
        )
    spread, shift = given.get("spread", True), _microseconds("phase_s", given.get("phase_s", 0))
    if not isinstance(spread, bool):
        raise InvalidSchedule(f"spread is {spread!r}", "expected true or false", "leave it out to spread")
    if shift < 0:
        raise InvalidSchedule(f"phase_s is {given['phase_s']!r}", "expected 0 or more", "give seconds")
    said |= {"spread": spread, "phase_s": _seconds(shift)}
    return Evenly(period, shift, spread), said


def _by_rate(given: Mapping[str, object]) -> tuple[Fraction, dict[str, object]]:
    per = given.get("per", "hour")
    if not isinstance(per, str) or per not in UNITS_S:
        raise InvalidSchedule(f"per is {per!r}", f"expected {', '.join(UNITS_S)}", "correct per=")
    rate = _fraction("rate", given["rate"])
    if rate <= 0:
        why = "expected how often it fires: more than 0"
        raise InvalidSchedule(f"rate is {given['rate']!r}", why, "to stop a schedule, pause it or remove it")
    return Fraction(UNITS_S[per] * SECOND_US) / rate, {"rate": _number(rate), "per": per}


def _by_interval(given: Mapping[str, object]) -> tuple[Fraction, dict[str, object]]:
    interval = _microseconds("interval_s", given["interval_s"])
    return Fraction(interval), {"interval_s": _seconds(interval)}


def _jitter(given: Mapping[str, object], times: Cron | Evenly) -> int:
    jitter = _microseconds("jitter_s", given.get("jitter_s", 0))
    most = JITTER_MAX_US
    if isinstance(times, Evenly):
        most = min(most, int(times.period) - RESOLUTION_US)
    if not 0 <= jitter <= most:
        why = f"expected 0 to {_seconds(most)}: at most a day, and a second less than from fire to fire"
        raise InvalidSchedule(f"jitter_s is {given['jitter_s']!r}", why, "give a smaller one")
    return jitter


def _microseconds(name: str, value: object) -> int:
    """A length of time, rounded to what the database has."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return round(_fraction(name, value) * SECOND_US)


def _fraction(name: str, value: object) -> Fraction:
    """A number as it was written: 0.1 is a tenth, and "1/24" is what no float can say."""
    if (
        is_finite(value)
        or isinstance(value, Fraction)
        or (isinstance(value, str) and WRITTEN.fullmatch(value))
    ):
        try:
            found = Fraction(str(value).replace(" ", ""))
        except (ValueError, ZeroDivisionError):
            found = None
        if found is not None and abs(found) <= NUMBER_MAX:
            return found
    raise InvalidSchedule(
        f"{name} is {shown(value)}",
        f'expected a number of at most {NUMBER_MAX}, such as 4, 0.5 or "1/24"',
        f"correct {name}=",
    )


def _number(value: Fraction) -> int | float | str:
    """The shortest JSON that says exactly this."""
    if value.denominator == 1:
        return int(value)
    return float(value) if Fraction(str(float(value))) == value else str(value)


def _seconds(us: int) -> int | float:
    return us // SECOND_US if us % SECOND_US == 0 else us / SECOND_US
