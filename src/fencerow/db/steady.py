"""A clock for deadlines on one host: it only grows, and counts the time during which the machine slept."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

# A laptop that slept or a paused machine has let its leases run out. time.monotonic() does not count that time.
SLEEPLESS = {"linux": "CLOCK_BOOTTIME", "darwin": "CLOCK_MONOTONIC"}


def sleepless_clock(platform: str) -> Callable[[], float]:
    """A clock that only grows and also counts the time during which the machine slept, where there is one."""
    clock: int | None = getattr(time, SLEEPLESS.get(platform, ""), None)
    return time.monotonic if clock is None else partial(time.clock_gettime, clock)


steady = sleepless_clock(sys.platform)
