"""What is told of claims: how many jobs they brought, how late, and of which nobody had told before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.attempt import Attempt
from fencerow.db.clock import CarriedClock


class ClaimFacts:
    """Tells of the claims of one pool. Used on the event loop only."""

    def __init__(self, telemetry: Telemetry, clock: CarriedClock) -> None:
        self.untold_us: int | None = None  # what was due before then is found now, and nobody had told of it
        self._telemetry = telemetry
        self._clock = clock

    def tell(self, queue: str, attempts: Sequence[Attempt], duration_s: float) -> None:
        """Of each job also how late it starts, where somebody hears that."""
        if not self._telemetry.is_heard:
            return
        self._telemetry.emit(Fact.CLAIMED, queue=queue, count=len(attempts), duration_s=duration_s)
        now_us = self._clock.now_us()
        if now_us is not None:
            for each in attempts:
                each.due_s = max(0.0, (now_us - each.claimed.run_at_us) / 1e6)
        if self.untold_us is not None:
            untold = [each.claimed.name for each in attempts if each.claimed.run_at_us < self.untold_us]
            for name, count in Counter(untold).items():
                self._telemetry.emit(Fact.SWEPT, job=name, queue=queue, count=count)
