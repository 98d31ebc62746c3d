"""Hypothesis judges what it tries: not how fast this machine tries it, and not what other threads do meanwhile.

An example has no deadline, and a machine that is kept busy may take its time to think of one. Hypothesis takes it for
a fault where the state of `random` is another after a strategy has drawn. It cannot tell who drew: a pool that connects
anew does so in its own thread, for its pauses. Our strategies draw nothing from `random`.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
OTHERS_DREW = (
    "ignore:Do not use the `random` module inside strategies:hypothesis.errors.HypothesisDeprecationWarning"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", OTHERS_DREW)
