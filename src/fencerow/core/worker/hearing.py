"""Hints: wake-ups of others come in, what this worker queued or ended is announced.

Nothing depends on a hint; polling and the sweeps lie beneath them always.
"""

from __future__ import annotations

from collections.abc import Callable

from fencerow.core.db.engine import Engine
from fencerow.core.model.wakeup import CancelAsked, Ordered, Queued, WakeUp, decode, encode, encode_ended
from fencerow.core.store.finish import Requeued
from fencerow.core.worker.claims import Claims
from fencerow.core.worker.lease import Lease


class Hearing:
    """Passes wake-ups to the claimers, the keeper and whom `tell` tells. Used on the event loop, but for `hear`."""

    def __init__(
        self,
        engine: Engine,
        lease: Lease,
        claims: Claims,
        *,
        look_now: Callable[[], None],
        soon: Callable[[Callable[[], None]], None],
        tell: Callable[[WakeUp | None], None],
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._claims = claims
        self._look_now = look_now
        self._soon = soon
        self._tell = tell

    def hear(self, message: str | None) -> None:
        """A wake-up, in some other thread. None: some may have been missed."""
        self._soon(lambda: self._heard(message))

    def announce_queued(self, jobs: list[Requeued]) -> None:
        """What we put behind our own marks lowers them at once, here and elsewhere."""
        lanes: dict[tuple[str, int], int] = {}
        for job in jobs:
            lane = (job.queue, job.priority)
            lanes[lane] = min(job.run_at_us, lanes.get(lane, job.run_at_us))
        messages = [
            encode(Queued(queue, priority, run_at_us)) for (queue, priority), run_at_us in lanes.items()
        ]
        if messages:
            self._engine.wake(messages)
        for (queue, priority), run_at_us in lanes.items():
            self._claims.hint(queue, priority, run_at_us)

    def announce_ended(self, ids: list[str]) -> None:
        """Somebody waits for these."""
        if ids:
            self._engine.wake(encode_ended(ids))

    def _heard(self, message: str | None) -> None:
        if message is None:
            self._claims.look_again()
            self._tell(None)
            return
        decoded = decode(message)
        match decoded:
            case Queued(queue, priority, run_at_us):
                self._claims.hint(queue, priority, run_at_us)
            case CancelAsked(holder, _) | Ordered(holder) if holder == self._lease.holder:
                self._look_now()
            case None:
                pass  # of a newer Fencerow
            case _:
                self._tell(decoded)
