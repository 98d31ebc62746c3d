"""What one process knows of a relay: whether it rests, and what keeps it from going on."""

from __future__ import annotations

import logging
import random
import time
from typing import Final

from fencerow.core.telemetry import Telemetry
from fencerow.db.text import clean
from fencerow.relay.errors import BrokerAway

log = logging.getLogger("fencerow.relay")

FIRST_S: Final = 0.5
PAUSE_S_MAX: Final = 30.0
TOLD_MAX: Final = 300


class Standing:
    """Shared by all that a relay does in this process: who meets a broker that is away spares the others the try."""

    def __init__(self, relay: str, telemetry: Telemetry) -> None:
        self.relay = relay
        self.paused = False
        self.trouble: str | None = None
        self.stated: str | None = None  # the trouble that stands in the database
        self._telemetry = telemetry
        self._failures = 0
        self._again_at = 0.0

    @property
    def wait_s(self) -> float:
        """For how long nothing should be tried; 0: it may be."""
        return max(0.0, self._again_at - time.monotonic())

    def met(self, error: BrokerAway) -> float:
        """Note that the broker is away; returns the seconds until the next try. What differs is told again."""
        told = clean(error.line)[:TOLD_MAX]
        self._failures += 1
        pause_s: float = min(PAUSE_S_MAX, FIRST_S * 2.0 ** min(self._failures - 1, 10))
        pause_s *= random.uniform(0.8, 1.2)  # noqa: S311 (spreads, hides nothing)
        self._again_at = time.monotonic() + pause_s
        if told != self.trouble:
            log.warning("the relay %s waits: %s", self.relay, told)
        self.trouble = told
        self._telemetry.counters.add("relay_failures")
        self._telemetry.emit("relay_waits", relay=self.relay, failures=self._failures)
        return pause_s

    def went_well(self) -> None:
        """The broker answered."""
        if self._failures:
            log.info("the relay %s goes on after %d failed tries", self.relay, self._failures)
        self._failures, self._again_at, self.trouble = 0, 0.0, None
