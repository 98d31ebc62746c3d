"""Hypothesis judges what it tries: not how fast this machine tries it, and not what other threads do meanwhile.

An example has no deadline, and a machine that is kept busy may take its time to think of one. Hypothesis takes it for
a fault where the state of `random` is another after a strategy has drawn. It cannot tell who drew: a pool that connects
anew does so in its own thread, for its pauses. Our strategies draw nothing from `random`.

It also reads the source of each module of ours that is loaded, for constants to try: a second and a half of a
processor in each process that collects all tests. What it tried then hung on which files were played beside.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

settings.register_profile(
    "any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
providers._get_local_constants = lambda: providers._local_constants
OTHERS_DREW = (
    "ignore:Do not use the `random` module inside strategies:hypothesis.errors.HypothesisDeprecationWarning"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", OTHERS_DREW)
