"""A process that is short of something for too long ends; the database's trouble is waited out for ever."""

from __future__ import annotations

import errno

import pytest

from fencerow.core.background import loop
from fencerow.core.background.loop import Endurance
from fencerow.core.errors import Unavailable

LIMIT_S = 5.0
SHORT = OSError(errno.EMFILE, "Too many open files")
AWAY = Unavailable("the server is away", "", "")


class Time:
    """The monotonic clock, moved by the test."""

    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    moved = Time()
    monkeypatch.setattr(loop, "time", moved)
    return moved


def test_a_shortage_that_lasts_ends_the_process(time: Time) -> None:
    endurance = Endurance("claims", LIMIT_S)
    assert endurance.met(SHORT) is None

    time.now_s += LIMIT_S

    assert endurance.met(SHORT) is not None


def test_the_time_for_which_the_database_was_away_is_no_shortage(time: Time) -> None:
    endurance = Endurance("claims", LIMIT_S)
    assert endurance.met(AWAY) is None
    time.now_s += 100 * LIMIT_S

    assert endurance.met(SHORT) is None
    assert endurance.shortage() is not None


def test_a_shortage_that_made_way_for_other_trouble_begins_anew(time: Time) -> None:
    endurance = Endurance("claims", LIMIT_S)
    assert endurance.met(SHORT) is None
    time.now_s += LIMIT_S / 2
    assert endurance.met(AWAY) is None
    time.now_s += LIMIT_S / 2

    assert endurance.met(SHORT) is None
