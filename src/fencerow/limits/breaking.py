"""The breaker of a limit: what failures do to its starts. No clock and no I/O.

Closed, every start may come. `failures` failures within `within_s` open it: nothing starts for `stop_s`. Then
`trials` jobs may try. One of them succeeds: it is closed. A failure: it is open again. One that ends in neither way,
because it was cancelled, snoozed or deleted, gives its place to another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec


class FailedAttempt(NamedTuple):
    """When an attempt failed, and when it had started, in microseconds since 1970."""

    at_us: int
    started_us: int


class BreakerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered. `failed_us`: the failures that still count, the oldest first. `open_until_us`: 0 while it is
    closed. `trials`: the jobs that try since then. `since_us`: what was started before that tells nothing any more."""

    failed_us: tuple[int, ...] = ()
    open_until_us: int = 0
    trials: tuple[str, ...] = ()
    since_us: int = 0

    @property
    def is_as_new(self) -> bool:
        """Whether it is closed, and knows of no failure."""
        return not (self.failed_us or self.open_until_us or self.trials)

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
        failed: Sequence[FailedAttempt],
        trying: Collection[str],
        succeeded: bool,
    ) -> BreakerState:
        """After what was told since the last look: which attempts failed; which of the trials are not over yet, and
        whether one of them has succeeded.

        An instant ahead of now was written before the clock went back, or while this look waited: it counts as now.
        """
        if not state.open_until_us:
            return self._counted(state, failed, now_us)
        until_us = min(state.open_until_us, now_us + self.stop_us)
        if now_us < until_us:
            return BreakerState(open_until_us=until_us)
        # What was started before its stop was over is no trial, and says nothing of what it protects now.
        if any(each.started_us >= until_us for each in failed):
            return BreakerState(open_until_us=now_us + self.stop_us)
        if succeeded:
            return BreakerState(since_us=until_us)
        trials = tuple(each for each in state.trials if each in trying)
        return BreakerState(open_until_us=until_us, trials=trials)

    def room(self, state: BreakerState, now_us: int) -> int | None:
        """How many may start now; None: it does not bound them."""
        if not state.open_until_us:
            return None
        return 0 if state.is_open(now_us) else max(0, self.trials - len(state.trials))

    def _counted(self, state: BreakerState, failed: Sequence[FailedAttempt], now_us: int) -> BreakerState:
        since_us = min(state.since_us, now_us)
        told = [each.at_us for each in failed if each.started_us >= since_us]
        if not told:
            return state
        known = sorted(min(each, now_us) for each in (*state.failed_us, *told))
        counted = tuple(each for each in known if each > now_us - self.within_us)
        if len(counted) >= self.failures:
            return BreakerState(open_until_us=now_us + self.stop_us)
        return BreakerState(failed_us=counted, since_us=since_us)


def started(state: BreakerState, ids: Sequence[str]) -> BreakerState:
    """After these jobs got their turn: while it lets some try, these do."""
    return msgspec.structs.replace(state, trials=(*state.trials, *ids)) if state.open_until_us else state
