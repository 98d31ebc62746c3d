"""How much of a work is done at once: half as much after what failed because of its size, and more again later.

What fails because of its size fails again if it is asked for again as it was: the journal of a claim of a thousand jobs
does not fit on a disk on which a thousand claims of one job do. Whoever takes work in parts has a `Portion`, and asks
for no more at once than that. At one it can become no smaller: what then fails waits, as for any trouble.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from fencerow.db.errors import StorageFull
from fencerow.db.recent import Recent
from fencerow.db.text import said_of
from fencerow.db.trouble import took_too_long

log = logging.getLogger("fencerow.db")

T = TypeVar("T")

CALM: Final = 16  # full portions in a row that went well, until twice as much is tried
QUICK: Final = 0.25  # of the time after which one was given up: what takes longer is no reason for more
ERROR_MAX: Final = 200  # characters of it


class Portion:
    """How many of these are done at once. Used by one task at a time; `too_large` is asked from any thread."""

    def __init__(self, what: str, most: int) -> None:
        self.rows = most
        self._what = what
        self._most = most
        self._given_up_s = 0.0  # how long the last one took that failed
        self._calm = 0
        self._large = Recent[str]()

    async def fit(self, wanted: int, do: Callable[[int], Awaitable[T]]) -> T:
        """Do as many as are wanted and as fit, half as many while that fails because of its size.

        Raises what any other failure raises, and what one alone meets.
        """
        while True:
            asked, began = min(wanted, self.rows), time.monotonic()
            try:
                done = await do(asked)
            except Exception as error:
                if not is_too_much(error) or not self.halve(error, asked, time.monotonic() - began):
                    raise
            else:
                self.fitted(asked, time.monotonic() - began)
                return done

    def halve(self, error: BaseException, asked: int, took_s: float) -> bool:
        """So many are to be taken for too many; returns whether there were more than one."""
        if self.rows == self._most and asked > 1:
            log.warning("%s: %d at once were too many, fewer are tried: %s", self._what, asked, error)
        self.rows = max(1, min(self.rows, asked) // 2)
        self._given_up_s = max(1.0, took_s)
        self._calm = 0
        text = f"{self._what}: {asked} at once were too many: {said_of(error)}"
        self._large.note(text[:ERROR_MAX])
        return asked > 1

    def fitted(self, asked: int, took_s: float) -> None:
        """So many went well in this time."""
        if asked < self.rows or self.rows == self._most:
            return
        self._calm = self._calm + 1 if took_s < self._given_up_s * QUICK else 0
        if self._calm >= CALM:
            self.rows, self._calm = min(self._most, 2 * self.rows), 0
            if self.rows == self._most:
                log.info("%s: %d are done at once again", self._what, self.rows)

    def too_large(self) -> str | None:
        """What was too much at once within the last minutes."""
        return self._large.told()


def is_too_much(error: BaseException) -> bool:
    """Whether it failed because of its size: no room on the disk, no memory, no time. Nothing of it was stored."""
    return (
        isinstance(error, StorageFull | MemoryError)
        or took_too_long(error)
        or is_beyond_limits(error)
        or getattr(error, "sqlstate", None) in ("53200", "53400")  # out of memory; `temp_file_limit`
    )


def is_beyond_limits(error: BaseException) -> bool:
    """Whether the statement was larger than the database takes at all: no room would help, only a smaller one."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorname", "") == "SQLITE_TOOBIG"
    state = getattr(error, "sqlstate", None) or ""
    return state.startswith("54") or (state == "XX000" and "invalid memory alloc request size" in str(error))
