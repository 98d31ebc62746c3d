"""What a worker believes of its lease."""

from __future__ import annotations

import time

import pytest

from fencerow.core.worker import lease as module
from fencerow.core.worker.lease import WorkerLease
from fencerow.db import steady as clocks


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the host; its only element may be changed."""
    clock = [1000.0]
    monkeypatch.setattr(module, "steady", lambda: clock[0])
    return clock


def renewed(lease: WorkerLease, sent: float) -> None:
    """A renewal in a database whose clock is that of the host."""
    lease.renewed(sent, round(sent * 1_000_000))


def test_it_holds_until_the_deadline_counted_from_before_the_renewal_was_sent(now: list[float]) -> None:
    lease = WorkerLease(10.0, 1.0)
    assert not lease.holds()
    lease.begin("a", sent=1000.0)
    now[0] = 1008.9
    assert lease.holds()
    now[0] = 1009.1  # a tenth is kept as a margin
    assert not lease.holds()
    renewed(lease, 1005.0)
    assert lease.holds()
    lease.end()
    assert not lease.holds() and lease.holder is None


def test_others_are_judged_only_after_a_lease_of_gapless_renewals(now: list[float]) -> None:
    lease = WorkerLease(10.0, 1.0)
    lease.begin("a", sent=1000.0)
    for second in range(1, 10):
        now[0] = 1000.0 + second
        renewed(lease, now[0])
        assert not lease.may_judge()
    now[0] = 1010.0
    renewed(lease, now[0])
    assert lease.may_judge()


@pytest.mark.parametrize("failure_was_seen", [True, False])
def test_a_gap_takes_the_right_to_judge_away(now: list[float], failure_was_seen: bool) -> None:
    lease = WorkerLease(10.0, 1.0)
    lease.begin("a", sent=1000.0)
    for second in range(1, 21):
        now[0] = 1000.0 + second
        renewed(lease, now[0])
    assert lease.may_judge()
    now[0] += 5.0
    if failure_was_seen:
        lease.stumbled()
        assert not lease.may_judge()
    renewed(lease, now[0])
    assert lease.holds() and not lease.may_judge()
    for _ in range(10):
        now[0] += 1.0
        renewed(lease, now[0])
    now[0] += 2.5 if failure_was_seen else 0
    renewed(lease, now[0])
    assert lease.may_judge()


def test_a_gap_in_which_others_lost_their_lease_is_never_overlooked(now: list[float]) -> None:
    """Who renewed last three seconds before an outage has lost its lease when that is over, and did nothing wrong."""
    lease = WorkerLease(9.0, 3.0)
    lease.begin("a", sent=1000.0)
    for _ in range(4):
        now[0] += 3.0
        renewed(lease, now[0])
    assert lease.may_judge()
    now[0] += 6.1
    renewed(lease, now[0])
    assert lease.holds() and not lease.may_judge()


def test_a_machine_that_slept_has_no_lease_and_judges_nobody(now: list[float]) -> None:
    """The clock counts suspended time; with one that stands still this worker would bury all the others."""
    lease = WorkerLease(10.0, 1.0)
    lease.begin("a", sent=1000.0)
    for second in range(1, 21):
        now[0] = 1000.0 + second
        renewed(lease, now[0])
    now[0] += 3600.0
    assert not lease.holds() and not lease.may_judge()
    renewed(lease, now[0])
    assert lease.holds() and not lease.may_judge()


def test_the_clock_counts_suspended_time_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system has no such clock")
    before = time.clock_gettime(time.CLOCK_BOOTTIME)

    assert before <= clocks.steady() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_the_clock_counts_sleep_where_one_does_and_goes_on_elsewhere() -> None:
    for platform in ("linux", "darwin", "freebsd14"):
        clock = clocks.sleepless_clock(platform)
        assert 0 <= clock() <= clock()
    assert clocks.sleepless_clock("freebsd14") is time.monotonic
    assert clocks.SLEEPLESS["darwin"] == "CLOCK_MONOTONIC", (
        "it counts sleep there, and time.monotonic() does not"
    )


def _judging(now: list[float]) -> WorkerLease:
    """A lease of 10 s that was renewed every second for 20 s, by a database whose clock is that of the host."""
    lease = WorkerLease(10.0, 1.0)
    lease.begin("a", sent=1000.0)
    for second in range(1, 21):
        now[0] = 1000.0 + second
        renewed(lease, now[0])
    return lease


@pytest.mark.parametrize("jump_s", [3600.0, 2.0, -2.0, -3600.0])
def test_a_jump_of_the_databases_clock_takes_the_right_to_judge_for_one_lease(
    now: list[float], jump_s: float
) -> None:
    lease = _judging(now)
    for second in range(10):
        now[0] += 1.0
        lease.renewed(now[0], round((now[0] + jump_s) * 1_000_000))
        assert lease.holds() and not lease.may_judge(), second
    now[0] += 1.0
    lease.renewed(now[0], round((now[0] + jump_s) * 1_000_000))
    assert lease.may_judge()


def test_a_reply_that_was_late_is_no_certain_clock(now: list[float]) -> None:
    """The clock was read anywhere between sent and reply: a jump may hide in there."""
    lease = _judging(now)
    sent = now[0] + 1.0
    now[0] += 4.0
    lease.renewed(sent, round(sent * 1_000_000))
    assert not lease.may_judge()


def test_the_right_to_judge_comes_a_lease_after_the_answer_that_showed_the_jump(now: list[float]) -> None:
    """The clock may have jumped at the end of the renewal's way: others had to renew only since then."""
    lease = _judging(now)
    sent = now[0] + 1.0
    now[0] = answered = sent + 0.9
    lease.renewed(sent, round((answered + 3600.0) * 1_000_000))
    for _ in range(9):
        now[0] += 1.0
        lease.renewed(now[0], round((now[0] + 3600.0) * 1_000_000))
    now[0] = answered + 9.5

    assert lease.holds() and not lease.may_judge()
    now[0] = answered + 10.0
    assert lease.may_judge()


def test_a_verdict_holds_for_a_margin_only_by_the_databases_clock(now: list[float]) -> None:
    """Beyond it the clock has jumped since the last renewal: every lease but our own would seem to be over."""
    lease = _judging(now)
    now[0] += 0.5
    warrant = lease.warrant()

    assert warrant is not None and warrant.judge == "a"
    assert warrant.until_us == round((1020.5 + lease.margin_s) * 1_000_000)
