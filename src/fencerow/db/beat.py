"""Instants at which all that is in no hurry looks, so that an idle process is woken once and not by each.

A process has beats of its own: those of many workers do not meet at the database.
"""

from __future__ import annotations

import random

BEAT_S = 1.0
OFFSET_S = random.uniform(0.0, BEAT_S)  # noqa: S311 (a place in time, not a secret)


def by_beat(now: float, pause_s: float) -> float:
    """The last beat within this pause from now on, in monotonic seconds; its end, if it has none."""
    until = now + pause_s
    beat = until - (until - OFFSET_S) % BEAT_S
    return beat if beat > now else until
