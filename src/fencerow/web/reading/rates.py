"""How fast each caller may send: a bucket of tokens for each, in bounded memory.

A bucket is one number: when it will be full again. It is forgotten only once it is full, and then a new one is the
same. So nobody gets a fresh bucket by making others, however many: where all places are taken, newcomers share a few
buckets, by a hash that they cannot know beforehand, and those who have a bucket keep it. Whoever gets a place then
begins with what is left in the shared bucket.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice

from fencerow.web.errors import TooManyRequests
from fencerow.web.settings import WebSettings

SHARED = 64
FORGOTTEN_AT_ONCE = 2  # more than the one that each request may add, so the old ones go


class Rates:
    """Buckets of `burst` tokens, to which `per_s` come each second; a request takes one. `per_s` 0: no bound.

    For one event loop or thread. The caller gives the time, in seconds of a clock that never goes back.
    """

    def __init__(self, per_s: float, burst: int, callers_max: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._callers_max = callers_max
        self._full_at: OrderedDict[str, float] = OrderedDict()  # those who sent longest ago come first
        self._shared_full_at = [0.0] * SHARED

    def __len__(self) -> int:
        """How many callers have a bucket of their own."""
        return len(self._full_at)

    @staticmethod
    def of(settings: WebSettings) -> Rates:
        """As the settings say."""
        return Rates(settings.web_rate_per_second, settings.web_rate_burst, settings.web_callers_max)

    def check(self, who: str, now: float) -> None:
        """Count one request.

        Raises:
            TooManyRequests: the caller must wait; the request counts for nothing.
        """
        wait_s = self.take(who, now)
        if wait_s is not None:
            raise TooManyRequests(
                "you send requests too fast",
                f"{self._per_s:g} a second are served for long, and {self._burst} at once",
                "wait as Retry-After says, and send more evenly",
                retry_after_s=wait_s,
            )

    def take(self, who: str, now: float) -> float | None:
        """Take a token; if there is none, None is taken and it says how many seconds to wait."""
        if not self._per_s:
            return None
        self._forget_full(now)
        shared = who not in self._full_at and len(self._full_at) >= self._callers_max
        place = hash(who) % SHARED
        full_at = self._full_at.get(who, self._shared_full_at[place])
        after = max(full_at, now) + 1 / self._per_s
        wait_s = after - now - self._burst / self._per_s
        if wait_s > 1e-9:  # less is what floats make of nothing
            return wait_s
        if shared:
            self._shared_full_at[place] = after
        else:
            self._full_at[who] = after
            self._full_at.move_to_end(who)
        return None

    def _forget_full(self, now: float) -> None:
        oldest = list(islice(self._full_at, FORGOTTEN_AT_ONCE))
        for who in oldest:
            if self._full_at[who] <= now:
                del self._full_at[who]
