"""Layers of job options."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.backoff import Backoff
from fencerow.core.model.defaults import Defaults
from fencerow.errors import ConfigError


def test_a_later_layer_wins_where_it_says_something() -> None:
    merged = Defaults.merged(
        Defaults(attempts_max=3, priority=5, backoff=Backoff()), Defaults(priority=0), Defaults(timeout_s=2)
    )

    assert merged == Defaults(attempts_max=3, priority=0, backoff=Backoff(), timeout_s=2)
    assert Defaults.merged() == Defaults()


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 101},
        {"priority": -101},
        {"priority": 1.5},
        {"attempts_max": 0},
        {"attempts_max": True},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"expires_s": "1"},
        {"backoff": 5},
    ],
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Defaults(**options)
