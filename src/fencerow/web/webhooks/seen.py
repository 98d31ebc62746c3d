"""Which webhooks a receiver has let pass, so that none that somebody recorded passes again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from fencerow.core.answering import answer

SEEN_MAX: Final = 100_000  # about 20 MB


@answer
class SeenWebhooks:
    """The webhooks of the last minutes in this process's memory; several threads may use it at once.

    A message is its id and its timestamp together: a try that follows another has a timestamp of its own, and has to
    pass. It is kept until its timestamp is too old to pass anyway. Only what was signed rightly is kept, so nobody
    else can fill it. Beyond `limit` the oldest is forgotten, and `forgotten` counts that.

    Several processes that receive do not share it: there, write the id to your database in the transaction of the work.
    """

    def __init__(self, limit: int = SEEN_MAX) -> None:
        self.forgotten = 0
        self._limit = limit
        self._until_s: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._until_s)

    def first(self, message: str, until: float, now: float) -> bool:
        """Whether the message comes for the first time; from now on it does not. Both times are seconds since 1970.

        After `until` it is too old to pass, and is forgotten.
        """
        with self._lock:
            if message in self._until_s:
                return False
            self._until_s[message] = until
            self._drop(now)
            return True

    def _drop(self, now: float) -> None:
        """They came about in the order in which they end, so a few looks at the oldest suffice."""
        for _ in range(2):
            oldest = next(iter(self._until_s))
            if self._until_s[oldest] >= now:
                break
            del self._until_s[oldest]
        if len(self._until_s) > self._limit:
            self._until_s.popitem(last=False)
            self.forgotten += 1
