"""The breaker of a limit: what failures do to its starts. No clock and no I/O.

Closed, every start may come. `failures` failures within `within_s` open it: nothing starts for `stop_s`. Then
`trials` jobs may try. One of them fails: it is open again. All have come back without a failure: it is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec


class BreakerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered. `failed_us`: the failures that still count, the oldest first. `open_until_us`: 0 while it is
    closed. `tried`: how many trials have started since then."""

    failed_us: tuple[int, ...] = ()
    open_until_us: int = 0
    tried: int = 0


@dataclass(frozen=True, slots=True)
class Breaking:
    """The numbers of a breaker."""

    failures: int
    within_us: int
    stop_us: int
    trials: int

    def failed(self, state: BreakerState, at_us: Sequence[int], now_us: int) -> BreakerState:
        """After these failures. Those that come while it is open were started before, and change nothing."""
        if not at_us or self.is_open(state, now_us):
            return state
        if state.open_until_us:
            return self._opened(now_us)
        counted = sorted([*state.failed_us, *at_us])
        # One of the future was noted before the clock went back: nobody knows how long ago it was.
        counted = [each for each in counted if now_us - self.within_us < each <= now_us]
        if len(counted) >= self.failures:
            return self._opened(now_us)
        return BreakerState(failed_us=tuple(counted))

    def is_open(self, state: BreakerState, now_us: int) -> bool:
        """Whether nothing may start now. An end that lies too far ahead was written before the clock went back."""
        return now_us < state.open_until_us <= now_us + self.stop_us

    def returned(self, state: BreakerState, now_us: int, held: int) -> BreakerState:
        """Closed, if all trials have come back. To be asked after `failed`: none of them failed."""
        is_over = state.open_until_us and not self.is_open(state, now_us)
        return BreakerState() if is_over and state.tried >= self.trials and held == 0 else state

    def room(self, state: BreakerState, now_us: int, held: int) -> int | None:
        """How many may start now; None: it does not bound them."""
        if not state.open_until_us:
            return None
        if self.is_open(state, now_us):
            return 0
        return max(0, min(self.trials - state.tried, self.trials - held))

    def started(self, state: BreakerState, count: int) -> BreakerState:
        """After so many starts."""
        return msgspec.structs.replace(state, tried=state.tried + count) if state.open_until_us else state

    def _opened(self, now_us: int) -> BreakerState:
        return BreakerState(open_until_us=now_us + self.stop_us)
