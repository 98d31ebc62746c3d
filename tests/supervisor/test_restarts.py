"""The pauses between two starts grow and are forgotten again, and what cannot succeed comes to an end."""

from __future__ import annotations

import pytest

from fencerow.db.errors import exits
from fencerow.supervisor.restarts import Patience, Restarts


def made(**patience: float) -> Restarts:
    return Restarts(Patience(jitter=0.0, **patience))  # type: ignore[arg-type]


def test_the_pause_grows_to_a_bound_for_each_place_alone() -> None:
    restarts = made(first_s=0.5, most_s=3.0)

    pauses = [restarts.died(1, exits.FAILED, 1.0) for _ in range(5)]

    assert pauses == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert restarts.died(2, exits.FAILED, 1.0) == 0.5


def test_who_was_healthy_for_long_begins_anew() -> None:
    restarts = made(first_s=0.5, healthy_s=60.0)
    for _ in range(4):
        restarts.died(1, exits.FAILED, 59.0)

    assert restarts.died(1, exits.FAILED, 60.0) == 0.5


def test_a_thousand_deaths_are_no_overflow() -> None:
    restarts = made(most_s=30.0)

    assert [restarts.died(1, exits.FAILED, 1.0) for _ in range(2_000)][-1] == 30.0


def test_starts_that_fail_are_counted_until_one_succeeds() -> None:
    restarts = made(starts_max=2)
    restarts.died(1, exits.UNEXPECTED, None)
    assert not restarts.is_hopeless(exits.UNEXPECTED, any_ready=False)
    restarts.ready()
    restarts.died(1, exits.UNEXPECTED, None)
    assert not restarts.is_hopeless(exits.UNEXPECTED, any_ready=False)

    restarts.died(2, exits.FAILED, None)

    assert restarts.is_hopeless(exits.FAILED, any_ready=False)
    assert not restarts.is_hopeless(exits.FAILED, any_ready=True), "the others do their work"
    assert restarts.worst == exits.UNEXPECTED


@pytest.mark.parametrize("code", [exits.REFUSED, exits.SCHEMA, exits.UNAVAILABLE])
def test_a_refusal_is_final_unless_it_has_worked_before(code: int) -> None:
    restarts = made()
    restarts.died(1, code, None)
    assert restarts.is_hopeless(code, any_ready=False)

    restarts.ready()
    restarts.died(1, code, None)

    assert not restarts.is_hopeless(code, any_ready=False), "a migration or a deploy may be under way"


def test_a_death_after_the_start_is_never_hopeless() -> None:
    restarts = made(starts_max=1)
    restarts.ready()

    restarts.died(1, exits.BLOCKED, 0.1)

    assert not restarts.is_hopeless(exits.BLOCKED, any_ready=False)
