"""Cron where clocks are changed, against a walk by the minute. The full walk: `python -m tests.schedules.walk FILE`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from tests.schedules.kinds import KINDS
from tests.schedules.walk import DAY, MINUTELY, SAMPLES, changes, wrong


@pytest.mark.parametrize(("zone", "change"), KINDS, ids=[f"{zone} {change:%Y-%m}" for zone, change in KINDS])
def test_cron_fires_as_the_walk_by_the_minute_says(zone: str, change: datetime) -> None:
    assert list(changes(zone, change - DAY, change + DAY)) == [change]  # so the walk crosses what it is about

    assert wrong(zone, change, SAMPLES, every=61) == []


def test_every_minute_of_a_gap_and_of_a_repeated_hour() -> None:
    assert [each for zone, change in KINDS[:2] for each in wrong(zone, change, MINUTELY, every=61)] == []


def test_the_walk_sees_a_rule_that_is_broken() -> None:
    """Taken as times of the other rule, an expression departs from the walk: the walk is no echo of the code."""
    zone, change = KINDS[1]
    other = [replace(sample, named=not sample.named) for sample in SAMPLES[:6]]

    assert len(wrong(zone, change, tuple(other), every=61)) >= 3
