"""What became of an attempt goes to the acker, the log and the counters."""

from __future__ import annotations

import logging
import time

from fencerow.core.model.outcome import Crashed, Failed, Retried, Succeeded
from fencerow.core.telemetry import Event, Telemetry
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Attempt, facts
from fencerow.core.worker.failures import log_crash, log_failure
from fencerow.core.worker.judging import Committed, Verdict

log = logging.getLogger("fencerow.worker")


class Reports:
    """Takes the verdict on each attempt of a worker, once."""

    def __init__(self, acker: Acker, telemetry: Telemetry) -> None:
        self._acker = acker
        self._telemetry = telemetry

    def report(self, attempt: Attempt, verdict: Verdict) -> None:
        duration_s = time.monotonic() - attempt.started if attempt.started else 0.0
        if verdict is None:
            log.warning(
                "job %s (%s) attempt %d lost its lease; its outcome is dropped",
                attempt.claimed.id,
                attempt.claimed.name,
                attempt.claimed.attempt,
            )
            self._acker.forget(attempt)
            self._telemetry.counters.add("leases_lost")
            self._telemetry.emit(Event.LEASE_LOST, **facts(attempt))
        elif isinstance(verdict, Committed):
            self._acker.committed(attempt, verdict.moved, duration_s)
        else:
            if not isinstance(verdict, Succeeded) and isinstance(verdict, Failed | Retried):
                log_failure(attempt.claimed, verdict, self._telemetry)
            if isinstance(verdict, Crashed):
                log_crash(attempt.claimed, verdict, self._telemetry)
            self._acker.put(attempt, verdict, duration_s)
