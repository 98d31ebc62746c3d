"""Looks again and again, in a thread: a slow or lost database must not keep the terminal from answering."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fencerow.core.errors import FencerowError
from fencerow.db.text import said_of
from fencerow.db.trouble import is_trouble
from fencerow.operators.top.look import Glance

PART = 10  # a look that takes long is followed by a pause of so many times its length
END_S = 2.0


class Looker:
    """Holds the last look and the trouble since then. `seen` is called, from the thread, after each try."""

    def __init__(self, ask: Callable[[], Glance], interval_s: float, seen: Callable[[], None]) -> None:
        self._ask, self._interval_s, self._seen = ask, interval_s, seen
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fencerow-top", daemon=True)
        self.latest: Glance | None = None
        self.trouble: str | None = None
        self.failed: BaseException | None = None  # an error that waiting cannot mend
        self._latest_at = time.monotonic()

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a look that is under way is waited for, but not for long."""
        self._end.set()
        self._thread.join(END_S)

    @property
    def note(self) -> str:
        """What a person must know about what is shown; nothing if all is well."""
        if self.trouble is None:
            return ""
        age_s = time.monotonic() - self._latest_at
        return f"{self.trouble}; tried again each second; this was seen {age_s:.0f} s ago"

    def _run(self) -> None:
        while not self._end.is_set():
            began = time.monotonic()
            try:
                self._take(self._ask())
            except Exception as error:
                if not is_trouble(error):
                    self.failed = error
                    self._end.set()
                else:
                    self.trouble = _shown(error)
            self._seen()
            took_s = time.monotonic() - began
            self._end.wait(
                max(self._interval_s - took_s, (PART - 1) * took_s if self.trouble is None else 1.0)
            )

    def _take(self, look: Glance) -> None:
        self.latest, self.trouble, self._latest_at = look, None, time.monotonic()


def _shown(error: Exception) -> str:
    return f"{error.code}: {error.what}" if isinstance(error, FencerowError) else said_of(error)
