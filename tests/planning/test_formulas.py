"""The closed formulas, with the figures of the prober that they were taken from; none of them is rounded."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fencerow.planning import (
    attempts_mean,
    capacity_per_hour,
    drain_minutes,
    entities_max,
    headroom_minutes,
    load_minutes,
    slots_needed,
)

RATES = {"deal": 4, "retrieval": 6}
MINUTES = {"deal": 5, "retrieval": 2}


def test_the_known_example() -> None:
    load = load_minutes(RATES, MINUTES)

    assert load == 32
    assert headroom_minutes(load) == 28
    assert entities_max(5 * 20, load) == 187


def test_the_known_example_with_slots_of_their_own() -> None:
    deals, retrievals = capacity_per_hour(5 * 10, 5), capacity_per_hour(5 * 10, 2)

    assert deals == 600 and deals / 4 == 150
    assert retrievals == 1500 and retrievals / 6 == 250
    assert (entities_max(50, 4 * 5), entities_max(50, 6 * 2)) == (150, 250)


def test_the_example_with_five_kinds() -> None:
    rates: dict[str, int | Fraction] = {**RATES, "sampled": 2, "cleanup": Fraction(1, 24), "pull": 1}
    load = load_minutes(rates, {**MINUTES, "sampled": 3, "cleanup": 5, "pull": 5})

    assert load == 43 + Fraction(5, 24)
    assert entities_max(100, load) == 138
    # Where it stands each kind was rounded up to whole minutes: 44.
    assert headroom_minutes(44) == 16 and entities_max(100, 44) == 136


@pytest.mark.parametrize(("load", "left", "drained"), [(59, 1, 60), (60, 0, None), (61, 0, None)])
def test_without_headroom_a_backlog_stays_for_ever(load: int, left: int, drained: int | None) -> None:
    assert headroom_minutes(load) == left
    assert drain_minutes(1, load) == drained


def test_no_backlog_is_drained_at_once_whatever_the_load() -> None:
    assert drain_minutes(0, 61) == 0


def test_the_slots_for_a_rate_and_a_duration() -> None:
    # providers * jobs per hour * seconds / 3600
    assert slots_needed(18 * load_minutes(RATES, MINUTES)) == 10
    assert slots_needed(load_minutes({"mail": 3600}, {"mail": Fraction(1, 60)})) == 1
    assert slots_needed(0) == 0


def test_what_else_there_is_leaves_less_room() -> None:
    assert entities_max(1, 10, besides=35) == 2
    assert entities_max(1, 10, besides=70) == 0


def test_tenths_are_tenths() -> None:
    assert entities_max(1, load_minutes({"a": 0.1, "b": 0.2}, {"a": 20, "b": 20})) == 10


def test_failures_cost_attempts() -> None:
    assert attempts_mean(0, 3) == 1
    assert attempts_mean(0.5, 3) == 1.75
    assert attempts_mean(0.9, 1) == 1
