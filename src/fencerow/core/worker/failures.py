"""Every failed attempt is logged once: with job, attempt, error and traceback without locals; the last at ERROR."""

from __future__ import annotations

import logging

from fencerow.core.model.job import Claimed
from fencerow.core.model.outcome import Crashed, Failed, Retried
from fencerow.core.telemetry import Telemetry, clean

log = logging.getLogger("fencerow.job")


def log_failure(claimed: Claimed, outcome: Failed | Retried, telemetry: Telemetry) -> None:
    """Log and count one failed attempt."""
    last = isinstance(outcome, Failed)
    what = "failed for good" if last else f"failed, next attempt in {_delay(outcome)}"
    telemetry.counters.add("attempts_failed")
    telemetry.counters.add("jobs_failed" if last else "attempts_retried")
    log.log(
        logging.ERROR if last else logging.WARNING,
        "job %s (%s) attempt %d %s: %s: %s [%s]\n%s",
        claimed.id,
        clean(claimed.name),
        claimed.attempt,
        what,
        clean(outcome.error.type),
        clean(outcome.error.message),
        outcome.error.code,
        "\n".join(clean(line) for line in outcome.error.traceback.splitlines()),
        extra={
            "job_id": claimed.id,
            "job": claimed.name,
            "queue": claimed.queue,
            "attempt": claimed.attempt,
            "code": outcome.error.code,
        },
    )


def log_crash(claimed: Claimed, outcome: Crashed, telemetry: Telemetry) -> None:
    """Log and count one crash."""
    telemetry.counters.add("attempts_crashed")
    log.error(
        "job %s (%s) attempt %d crashed: %s; crashes before it: %d",
        claimed.id,
        clean(claimed.name),
        claimed.attempt,
        clean(outcome.reason),
        claimed.crashes,
        extra={"job_id": claimed.id, "job": claimed.name, "queue": claimed.queue, "attempt": claimed.attempt},
    )


def _delay(outcome: Failed | Retried) -> str:
    return f"{outcome.delay_s:.1f} s" if isinstance(outcome, Retried) else "-"
