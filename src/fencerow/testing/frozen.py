"""An event loop for which time passes, also where a test has frozen Python's clock."""

from __future__ import annotations

import asyncio
import time
from types import BuiltinFunctionType


class RealTimeLoop(asyncio.SelectorEventLoop):
    """Goes by a clock that freezegun leaves alone. asyncio's own is `time.monotonic`, which it replaces."""

    def time(self) -> float:
        return time.clock_gettime(time.CLOCK_MONOTONIC)


def is_frozen() -> bool:
    """Whether somebody has put another function in the place of `time.monotonic`."""
    return not isinstance(time.monotonic, BuiltinFunctionType)
