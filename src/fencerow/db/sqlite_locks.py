"""How we wait for a lock on a SQLite file: everybody looks equally often.

SQLite waits longer after each try, up to 100 ms. So whoever has waited longest looks least often. Where others write
without a pause, a file is free for the few milliseconds between two commits alone, and such a one comes to nothing for
seconds: the slower the disk, the fewer of these moments there are.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LOOK_S = 0.001  # between two looks for a lock


def is_locked(error: sqlite3.OperationalError) -> bool:
    """Whether another connection has the file."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def after(timeout_s: float) -> float:
    """The instant of `time.monotonic()` until which `evenly` may wait."""
    return time.monotonic() + timeout_s


def evenly(look: Callable[[], T], until: float) -> T:
    """What `look` returns once it finds no lock in its way. SQLite itself must not wait in it, and a look that fails
    must have done nothing. The last look, after `until`, raises what is in its way."""
    while True:
        is_last = time.monotonic() >= until
        try:
            return look()
        except sqlite3.OperationalError as error:
            if is_last or not is_locked(error):
                raise
        time.sleep(random.uniform(0.5, 1.5) * LOOK_S)  # noqa: S311 (jitter, not a secret)
