"""Delays between attempts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencerow.core.model.backoff import Backoff
from fencerow.errors import ConfigError


def zero() -> float:
    return 0.0


def test_delays_double_up_to_the_cap() -> None:
    delays = [Backoff().delay_s(failures, zero) for failures in (1, 2, 3, 6, 7, 8)]

    assert delays == [5, 10, 20, 160, 300, 300]


def test_jitter_adds_up_to_its_share() -> None:
    assert Backoff().delay_s(1, lambda: 1.0) == 6.0
    assert Backoff().delay_s(99, lambda: 1.0) == 360.0
    assert Backoff(jitter=0).delay_s(2, lambda: 0.7) == 10.0


def test_a_constant_delay_stays_constant_however_often_it_fails() -> None:
    assert Backoff(base_s=7, factor=1, jitter=0).delay_s(10**30, zero) == 7
    assert Backoff(base_s=0).delay_s(10**30, zero) == 0


@given(
    st.integers(-5, 10**400),
    st.floats(0, 1e6),
    st.floats(1, 1000),
    st.floats(0, 1e6),
    st.floats(0, 1),
    st.floats(-1, 2),
)
def test_no_delay_exceeds_its_bounds(
    failures: int, base_s: float, factor: float, cap_s: float, jitter: float, drawn: float
) -> None:
    delay_s = Backoff(base_s, factor, cap_s, jitter).delay_s(failures, lambda: drawn)

    assert 0 <= delay_s <= cap_s * (1 + jitter)


@pytest.mark.parametrize(
    "options",
    [
        {"base_s": -1},
        {"factor": 0.5},
        {"cap_s": math.inf},
        {"jitter": 2},
        {"base_s": math.nan},
        {"cap_s": "3"},
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Backoff(**options)


def test_a_backoff_is_kept_with_its_job() -> None:
    own = Backoff(1.5, 3, 60, 0)

    assert Backoff.from_json(own.to_json()) == own
    assert Backoff.from_json('{"base_s":1,"later_field":2}') == Backoff(base_s=1)
    for text in ("", "[]", '{"factor":0}', '{"base_s":"x"}'):
        with pytest.raises(ConfigError):
            Backoff.from_json(text)
