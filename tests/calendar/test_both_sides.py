"""Limits and schedules read hours alike: what one understands the other does, and what one refuses, too."""

from __future__ import annotations

import pytest

from fencerow.errors import FencerowError
from fencerow.limits import Limit
from fencerow.schedules.windows import MaintenanceWindows


def refused(text: str) -> list[FencerowError]:
    """What a limit says of it, and what a schedule says."""
    found = []
    for read in (lambda: Limit("a", hours=text), lambda: MaintenanceWindows.parse([text])):
        with pytest.raises(FencerowError) as error:
            read()
        found.append(error.value)
    return found


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("09:00-17:00 localtime", "FR-821", "another zone on every host"),
        ("09:00-17:00 posixrules", "FR-821", "another zone on every host"),
        ("09:00-17:00 Europe/Berln", "FR-821", "Europe/Berlin"),
        ("09:00-09:00", "FR-822", "it ends when it starts"),
        ("24:00-01:00", "FR-822", "it starts at 24:00"),
        ("mon-foo 09:00-17:00", "FR-822", "it names the day 'foo'"),
        ("at night", "FR-822", "it has no known form"),
    ],
)
def test_both_refuse_the_same_in_the_same_words(text: str, code: str, said: str) -> None:
    limit, schedule = refused(text)

    assert limit.code == schedule.code == code
    assert said in limit.why and (limit.why, limit.fix) == (schedule.why, schedule.fix)


@pytest.mark.parametrize(
    "text",
    ["daily 9:00-17:00", "fri 22:00 - mon 06:00 Europe/Berlin", "Sunday,sat 9:00 - 12:00", "2026-12-24"],
)
def test_both_understand_the_same(text: str) -> None:
    assert Limit("a", hours=text).openings == MaintenanceWindows.parse([text]).windows
