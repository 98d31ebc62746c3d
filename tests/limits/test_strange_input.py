"""Whatever is given for a number or a time is refused with an error of ours, or it works: nothing else comes out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from fencerow import App, Config, Defaults, InvalidInput
from fencerow.core.client.waiting import check_wait
from fencerow.core.model.control import check_delay
from fencerow.core.model.seconds import is_finite
from fencerow.db.text import shown
from fencerow.errors import FencerowError
from fencerow.limits import Breaker, Limit, Rate

HUGE, LONGER = 10**400, 10**5000  # no float holds the first, and Python writes not even the second
STRANGE = [HUGE, LONGER, -LONGER, float("nan"), float("inf"), 1j, "5", b"5", [], timedelta.max]
DOORS: dict[str, Callable[[Any], object]] = {
    "count": lambda given: Rate(given),
    "per_s": lambda given: Rate(1, per_s=given),
    "burst": lambda given: Rate(1, burst=given),
    "failures": lambda given: Breaker(given),
    "within_s": lambda given: Breaker(1, within_s=given),
    "stop_s": lambda given: Breaker.parse("5/60s", stop_s=given),
    "at_once": lambda given: Limit("a", at_once=given),
    "version": lambda given: Limit("a", at_once=1, version=given),
    "hours": lambda given: Limit("a", hours=given),
    "some hours": lambda given: Limit("a", hours=[given]),
    "a default": lambda given: Defaults(priority=given, timeout_s=given),
    "a setting": lambda given: Config(lease_s=given),
    "a delay": lambda given: check_delay(given, "delay_s", zero=True),
    "a job's time limit": lambda given: App("sqlite:///x.db").job(timeout_s=given)(_job),
    "unique": lambda given: App("sqlite:///x.db").job(unique=given)(_job),
}


def _job() -> None: ...


@pytest.mark.parametrize("door", DOORS)
def test_what_no_number_can_be_is_refused(door: str) -> None:
    for given in STRANGE:
        if (door, given) in (("hours", []), ("unique", "5")):
            continue
        with pytest.raises(FencerowError):
            DOORS[door](given)


def test_who_waits_says_how_long() -> None:
    assert check_wait(float("inf")) is check_wait(None) is None
    for given in (HUGE, LONGER, float("nan"), "5", True):
        with pytest.raises(InvalidInput):
            check_wait(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["localtime", "posixrules", "Factory", "Nowhere/City"])
def test_hours_are_those_of_a_zone_that_is_the_same_on_every_host(zone: str) -> None:
    with pytest.raises(InvalidInput, match="zone"):
        Limit("a", hours=f"09:00-17:00 {zone}")


@pytest.mark.parametrize("text", ["\u0661/s", "\u0660\u0669:00-17:00"])
def test_digits_are_those_that_everybody_reads(text: str) -> None:
    for read in (Rate.parse, Breaker.parse, lambda given: Limit("a", hours=given)):
        with pytest.raises(InvalidInput):
            read(text)


def test_anything_can_be_shown() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    assert shown("\u202e" * 99).startswith("'\\u202e") and len(shown("x" * 999)) == 80
    assert shown(LONGER) == "of type int and cannot be shown"
    assert shown(Silent()) == "of type Silent and cannot be shown"
    assert is_finite(sys.maxsize) and not is_finite(HUGE) and not is_finite(True)


def test_hours_in_utc_need_no_database_of_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencerow.calendar.zones.zone_names", frozenset[str])

    assert str(Limit("a", hours=["09:00-17:00"])) == "open 09:00-17:00"
    with pytest.raises(InvalidInput, match="no time zone 'Europe/Malta'"):
        Limit("a", hours=["09:00-17:00 Europe/Malta"])


def test_a_zone_is_named_as_all_hosts_name_it() -> None:
    with pytest.raises(InvalidInput, match="no time zone 'posix/Europe/Malta'"):
        Limit("a", hours=["09:00-17:00 posix/Europe/Malta"])
