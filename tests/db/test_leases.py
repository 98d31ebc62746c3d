"""What an owner believes of what it leased, by its own clock."""

from __future__ import annotations

import pytest

from fencerow.db import leases
from fencerow.db.leases import Belief


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the host; its only element may be changed."""
    clock = [1000.0]
    monkeypatch.setattr(leases, "steady", lambda: clock[0])
    return clock


def test_it_ends_a_margin_before_the_lease_counted_from_before_the_take_was_sent(now: list[float]) -> None:
    mine = Belief(10.0, sent=995.0)
    now[0] = 1003.9
    assert told(mine) == (False, pytest.approx(0.1))
    now[0] = 1004.0
    assert told(mine) == (True, 0.0)


def test_the_margin_is_a_tenth_but_at_most_two_seconds(now: list[float]) -> None:
    assert Belief(10.0, 1000.0).deadline == 1009.0
    assert Belief(3600.0, 1000.0).deadline == 4598.0


def test_a_renewal_counts_from_before_it_was_sent_and_an_older_answer_takes_nothing_away(
    now: list[float],
) -> None:
    mine = Belief(10.0, 1000.0)
    mine.renewed(1005.0)
    mine.renewed(1003.0)
    assert mine.deadline == 1014.0


def test_what_was_lost_stays_lost(now: list[float]) -> None:
    late, refused = Belief(10.0, 1000.0), Belief(10.0, 1000.0)
    refused.lose()
    now[0] = 1009.5
    assert told(late) == (True, 0.0)
    late.renewed(1009.0)
    refused.renewed(1009.0)
    assert told(late) == told(refused) == (True, 0.0)


def told(mine: Belief) -> tuple[bool, object]:
    return mine.lost, mine.left_s
