"""What a holder believes of its mutex, by its own clock."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fencerow.db import leases
from fencerow.errors import MutexLost
from fencerow.guards.mutex import hold
from fencerow.guards.mutex.hold import Hold
from fencerow.guards.mutex.taking import delay_of


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the host; its only element may be changed."""
    clock = [1000.0]
    for module in (hold, leases):
        monkeypatch.setattr(module, "steady", lambda: clock[0])
    return clock


def held(stale_s: float = 10.0, sent: float = 1000.0) -> Hold:
    return Hold(cast(Any, None), "k", holder="h", token=3, stale_s=stale_s, sent=sent, fence=None)


def test_it_stops_before_others_may_start_counted_from_before_the_take_was_sent(now: list[float]) -> None:
    now[0] = 999.4
    mine = held(sent=990.5)
    mine.check()
    assert mine.is_held

    now[0] = 999.6

    assert told(mine) == (True, False)
    with pytest.raises(MutexLost, match="token 3"):
        mine.check()


def told(mine: Hold) -> tuple[bool, bool]:
    return mine.lost, mine.is_held


def test_the_margin_is_a_tenth_but_at_most_two_seconds(now: list[float]) -> None:
    assert held(10.0).deadline == 1009.0
    assert held(3600.0).deadline == 4598.0


def test_a_renewal_counts_from_before_it_was_sent_and_brings_nothing_back(now: list[float]) -> None:
    mine = held()
    mine.renewed(1005.0)
    assert mine.deadline == 1014.0
    mine.renewed(1003.0)  # an older answer
    assert mine.deadline == 1014.0
    now[0] = 1015.0
    assert told(mine) == (True, False)
    mine.renewed(1015.0)
    assert told(mine) == (True, False), "what was told as lost stays lost"


def test_a_loss_is_told_once_and_never_after_its_end(now: list[float]) -> None:
    heard: list[str] = []
    mine, ended = held(), held()
    for each in (mine, ended):
        each.on_lost(lambda: heard.append("lost"))
    ended.end()

    mine.lose("taken")
    mine.lose("again")
    ended.lose("too late")

    assert heard == ["lost"]
    assert not ended.lost and not ended.is_held
    assert not ended.wait_lost(5.0)
    assert mine.wait_lost(5.0) and mine.wait_lost(5.0)


def test_renewals_leave_room_for_three_that_fail(now: list[float]) -> None:
    mine = held(8.0)
    assert mine.renew_s == 2.0
    assert mine.deadline - 1000.0 > 3 * mine.renew_s


def test_the_delays_of_a_job_that_puts_itself_back() -> None:
    assert [delay_of(number) for number in range(1, 9)] == [2, 4, 8, 16, 30, 30, 30, 30]
