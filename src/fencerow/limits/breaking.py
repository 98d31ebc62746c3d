"""The breaker of a limit: what failures do to its starts. No clock and no I/O.

Closed, every start may come. `failures` failures within `within_s` open it: nothing starts for `stop_s`. Then
`trials` jobs may try. One of them succeeds: it is closed. A failure: it is open again. One that ends in neither way,
because it was cancelled, snoozed or deleted, gives its place to another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec


class BreakerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered. `failed_us`: the failures that still count, the oldest first. `open_until_us`: 0 while it is
    closed. `trials`: the jobs that try since then."""

    failed_us: tuple[int, ...] = ()
    open_until_us: int = 0
    trials: tuple[str, ...] = ()

    def is_open(self, now_us: int) -> bool:
        """Whether nothing may start now."""
        return now_us < self.open_until_us


CLOSED = BreakerState()


@dataclass(frozen=True, slots=True)
class Breaking:
    """The numbers of a breaker."""

    failures: int
    within_us: int
    stop_us: int
    trials: int

    def seen(
        self,
        state: BreakerState,
        now_us: int,
        *,
        failed_us: Sequence[int],
        trying: Collection[str],
        succeeded: bool,
    ) -> BreakerState:
        """After what was told since the last look: when attempts failed; which of the trials are not over yet, and
        whether one of them has succeeded.

        An instant ahead of now was written before the clock went back, or while this look waited: it counts as now.
        """
        if not state.open_until_us:
            return self._counted(state, failed_us, now_us)
        until_us = min(state.open_until_us, now_us + self.stop_us)
        if now_us < until_us:
            return BreakerState(open_until_us=until_us)
        # What failed before the end was started before it opened.
        if any(each >= until_us for each in failed_us):
            return BreakerState(open_until_us=now_us + self.stop_us)
        if succeeded:
            return CLOSED
        trials = tuple(each for each in state.trials if each in trying)
        return BreakerState(open_until_us=until_us, trials=trials)

    def room(self, state: BreakerState, now_us: int) -> int | None:
        """How many may start now; None: it does not bound them."""
        if not state.open_until_us:
            return None
        return 0 if state.is_open(now_us) else max(0, self.trials - len(state.trials))

    def _counted(self, state: BreakerState, failed_us: Sequence[int], now_us: int) -> BreakerState:
        if not failed_us:
            return state
        known = sorted(min(each, now_us) for each in (*state.failed_us, *failed_us))
        counted = tuple(each for each in known if each > now_us - self.within_us)
        if len(counted) >= self.failures:
            return BreakerState(open_until_us=now_us + self.stop_us)
        return BreakerState(failed_us=counted)


def started(state: BreakerState, ids: Sequence[str]) -> BreakerState:
    """After these jobs got their turn: while it lets some try, these do."""
    return msgspec.structs.replace(state, trials=(*state.trials, *ids)) if state.open_until_us else state
