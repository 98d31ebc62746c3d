"""Hypothesis judges what it tries, and not how fast this machine tries it.

An example has no deadline, and a machine that is kept busy may take its time to think of one.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
