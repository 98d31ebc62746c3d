"""What a schedule may say, and what is refused at the door."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from fencerow.errors import InvalidSchedule, UnknownZone
from fencerow.schedules.spec import Spec
from tests.schedules.instants import us, utc

EVERY_15 = {"interval_s": 900, "spread": False}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "does not say when it fires"),
        ({"cron": "* * * * *", "rate": 3}, "says cron and rate"),
        ({"cron": "* * * * *", "phase_s": 3}, "has no 'phase_s'"),
        ({"cron": 5}, "cron is 5"),
        ({"cron": "* * * * *", "tz": 1}, "tz is 1"),
        ({"cron": "0 9 * *"}, "has 4 fields"),
        ({"cron": "61 * * * *"}, "wrong at column 1: '61' is no minute"),
        ({"cron": "0 1,2,99 * * *"}, "wrong at column 7: '99' is no hour"),
        ({"cron": " 0  9 32 * *"}, "wrong at column 7: '32' is no day of the month"),
        ({"cron": "0 9 * JUNO *"}, "wrong at column 7: 'JUNO' is no month"),
        ({"cron": "0 9 * * 5-1"}, "wrong at column 9: '5-1' is no day of the week"),
        ({"cron": "0 9 * * 1,"}, "wrong at column 11: '' is no day of the week"),
        ({"cron": "70 0 9 * * *"}, "wrong at column 1: '70' is no second"),
        ({"cron": "*/0 * * * *"}, "'*/0' is no minute"),
        ({"cron": "0 0 30 2 *"}, "never fires"),
        ({"cron": "* * */20 * 1L"}, "never fires"),
        ({"cron": "@every 5m"}, "give interval_s="),
        ({"cron": "@reboot"}, "no such name in cron"),
        ({"cron": "1," * 200}, "400 characters"),
        ({"rate": -1}, "rate is -1"),
        ({"rate": 0}, "to stop a schedule, pause it"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": float("inf")}, "rate is inf"),
        ({"rate": True}, "rate is True"),
        ({"rate": "1/0"}, "rate is '1/0'"),
        ({"rate": 4, "per": "fortnight"}, "expected minute, hour, day"),
        ({"rate": 100, "per": "minute"}, "is 0.6 s from fire to fire"),
        ({"rate": 1e-9}, "at most ten years"),
        ({"interval_s": 0.5}, "at least 1 s"),
        ({"interval_s": 0}, "at least 1 s"),
        ({"interval_s": -5}, "at least 1 s"),
        ({"interval_s": 60, "jitter_s": 59.5}, "expected 0 to 59"),
        ({"interval_s": 60, "jitter_s": -1}, "jitter_s is -1"),
        ({"interval_s": 60, "phase_s": -1}, "phase_s is -1"),
        ({"interval_s": 60, "spread": 1}, "spread is 1"),
        ({"cron": "@daily", "jitter_s": 86_401}, "jitter_s is 86401"),
    ],
)
def test_what_cannot_work_is_refused(document: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Spec.parse(document)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("America/New York", "America/New_York"),
        ("Europe", "closest names"),
        ("../../etc/passwd", "names are those of IANA"),
        ("", "names are those of IANA"),
        ("localtime", "another zone on every host"),
    ],
)
def test_an_unknown_zone_is_refused_with_close_names(name: str, said: str) -> None:
    with pytest.raises(UnknownZone) as refused:
        Spec.parse({"cron": "0 9 * * *", "tz": name})

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"cron": " 0  9 * * mon "}, {"cron": "0 9 * * mon", "tz": "UTC"}),
        ({"cron": "@Daily", "tz": "Asia/Tokyo"}, {"cron": "0 0 * * *", "tz": "Asia/Tokyo"}),
        ({"cron": "0 9 * * *", "jitter_s": 0}, {"cron": "0 9 * * *", "tz": "UTC"}),
        ({"rate": 4.0}, {"rate": 4, "per": "hour", "spread": True, "phase_s": 0}),
        ({"rate": "2/48"}, {"rate": "1/24", "per": "hour", "spread": True, "phase_s": 0}),
        ({"rate": 0.001}, {"rate": 0.001, "per": "hour", "spread": True, "phase_s": 0}),
        (
            {"interval_s": timedelta(minutes=1), "jitter_s": 0.25},
            {"interval_s": 60, "spread": True, "phase_s": 0, "jitter_s": 0.25},
        ),
    ],
)
def test_a_document_has_one_spelling(given: dict[str, object], kept: dict[str, object]) -> None:
    spec = Spec.parse(given)

    assert spec.document() == kept
    assert Spec.parse(spec.document()) == spec


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            {"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"},
            "At 09:00 on Monday through Friday, in Europe/Berlin",
        ),
        ({"rate": 4}, "4 times an hour, spread by name and entity"),
        ({"rate": 1, "per": "day", "spread": False}, "once a day"),
        (
            {"interval_s": 900, "spread": False, "phase_s": 300},
            "every 15 minutes, 5 minutes behind the full one",
        ),
        (
            {"interval_s": 90, "spread": False, "jitter_s": 0.5},
            "every 90 seconds, delayed by up to 0.5 seconds",
        ),
    ],
)
def test_a_schedule_says_itself_in_words(document: dict[str, object], words: str) -> None:
    assert Spec.parse(document).in_words() == words


def test_a_fire_is_strictly_later_than_the_instant_asked_about() -> None:
    spec, noon = Spec.parse(EVERY_15), utc(2026, 11, 23, 12)

    assert spec.next_after(noon - 1, "") == noon
    assert spec.next_after(noon, "") == noon + us(900)
    assert spec.last_until(noon, "") == noon
    assert spec.last_until(noon - 1, "") == noon - us(900)


def test_fires_end_at_the_bound_and_at_the_count() -> None:
    spec, noon = Spec.parse(EVERY_15), utc(2026, 11, 23, 12)

    assert spec.fires(noon, noon + us(1800), "", 10) == [noon + us(900), noon + us(1800)]
    assert spec.fires(noon, noon + us(1800), "", 1) == [noon + us(900)]
    assert spec.fires(noon, noon + us(899), "", 10) == []


def test_seconds_stand_in_a_sixth_field_in_front() -> None:
    spec, noon = Spec.parse({"cron": "*/20 30 12 * * *"}), utc(2026, 11, 23, 12)

    assert spec.fires(noon, noon + us(86_400), "", 10) == [noon + us(1800 + n) for n in (0, 20, 40)]


HUGE = [10**400, 10**5000, -(10**5000), float("inf"), "1e999999999", "9" * 5000, "1/0", Fraction(10**400)]


@pytest.mark.parametrize("name", ["interval_s", "rate", "phase_s", "jitter_s"])
def test_a_number_that_nothing_can_hold_is_refused(name: str) -> None:
    for given in HUGE:
        with pytest.raises(InvalidSchedule, match=name):
            Spec.parse({"interval_s": 60, name: given} if name != "rate" else {"rate": given, "per": "day"})
