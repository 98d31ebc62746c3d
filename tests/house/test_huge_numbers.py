"""A number that no float can hold, or that Python does not write out, is refused like any other wrong number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencerow.batches import declare
from fencerow.core.model.percent import percent_of
from fencerow.errors import FencerowError
from fencerow.guards.checked import owner_now
from fencerow.guards.mutex.terms import Terms, terms_of
from fencerow.guards.transitions import Lease, Move, Overdue, Transitions
from fencerow.limits.rate import Breaker
from fencerow.planning import checking
from fencerow.schedules.spec import Spec

HUGE = {"400 digits": 10**400, "below": -(10**400), "5000 digits": 10**5_000}


def a_machine(lease_s: float = 60, after_s: float = 60) -> Transitions:
    lease = Lease(lease_s=lease_s, since="started_at", fence="attempts")
    moves = [Move("claim", "queued", "running", lease=lease), Move("finish", "running", "done")]
    return Transitions(
        None,  # type: ignore[arg-type]  # nothing here reaches a database
        table="documents",
        column="status",
        states=["queued", "running", "done"],
        moves=moves,
        overdue=[Overdue("queued", "queued_at", after_s)],
    )


def a_mutex(stale_s: float = 60.0, deferrals_max: int = 1) -> Terms:
    return terms_of(
        "a",
        purpose=None,
        stale_s=stale_s,
        wait_s=1.0,
        busy="raise",
        deferrals_max=deferrals_max,
        deferral_jitter=False,
    )


DOORS: dict[str, Callable[[int], object]] = {
    "lease of a claim": lambda huge: a_machine(lease_s=huge),
    "age of a state": lambda huge: a_machine(after_s=huge),
    "seconds of a plan": lambda huge: checking.seconds(huge, "horizon_s"),
    "share of a plan": lambda huge: checking.share(huge, "failure_share"),
    "whole number of a plan": lambda huge: checking.whole(huge, "slots", 1, 10),
    "jitter of a schedule": lambda huge: Spec.parse({"interval_s": 60, "jitter_s": huge}),
    "failures of a breaker": lambda huge: Breaker.parse(f"{'9' * huge.bit_length()}/60s"),
    "seconds of a mutex": lambda huge: a_mutex(stale_s=huge),
    "deferrals of a mutex": lambda huge: a_mutex(deferrals_max=huge),
    "attempt of an owner": lambda huge: owner_now("me", huge),
    "progress": percent_of,
    "size of a batch": declare._checked_batch_max,  # pyright: ignore[reportPrivateUsage]
    "wait for a batch": declare._checked_batch_wait,  # pyright: ignore[reportPrivateUsage]
}


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize("door", DOORS)
def test_a_huge_number_is_refused(door: str, huge: str) -> None:
    with pytest.raises(FencerowError):
        DOORS[door](HUGE[huge])


def test_a_rate_near_nothing_is_refused() -> None:
    with pytest.raises(FencerowError, match="more than ten years from fire to fire"):
        Spec.parse({"rate": 1e-320})
