"""What becomes of a delivery, and what is told of it."""

from __future__ import annotations

import logging
import random

from fencerow.core.model.describe import ErrorRecord, describe
from fencerow.core.model.outcome import Failed, Retried, Snoozed
from fencerow.core.model.retry import RetryRule, after_failure
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.db.text import clean, kind_and_text
from fencerow.events.event import Event

log = logging.getLogger("fencerow.events")


def judged(rule: RetryRule, error: BaseException, failures: int) -> tuple[float, bool, ErrorRecord]:
    """What becomes of a failed delivery: after how many seconds it is due, whether it is parked, and why."""
    outcome = after_failure(
        rule, error, failures, rule.attempts_max, failures, rule.attempts_max, random.random
    )
    if isinstance(outcome, Snoozed):
        return outcome.delay_s, False, describe(error)
    if isinstance(outcome, Retried):
        return outcome.delay_s, False, outcome.error
    # Only a job can be suspended: a handler of events that raises what suspends one has failed.
    return 0.0, True, outcome.error if isinstance(outcome, Failed) else describe(error)


def tell_delivered(telemetry: Telemetry, event: Event, duration_s: float) -> None:
    """Count a delivery that went well."""
    telemetry.emit(
        Fact.EVENT_DELIVERED,
        group=event.group,
        topic=event.topic,
        deliveries=event.delivery,
        duration_s=duration_s,
    )


def tell_failed(telemetry: Telemetry, event: Event, parked: bool, told: ErrorRecord) -> None:
    """Count and log a delivery that failed."""
    telemetry.counters.add("events_parked" if parked else "events_failed")
    name = Fact.EVENT_PARKED if parked else Fact.EVENT_FAILED
    telemetry.emit(name, group=event.group, topic=event.topic, code=told.code)
    log.log(
        logging.ERROR if parked else logging.WARNING,
        "group %s %s event %d (%s) in delivery %d: %s",
        event.group,
        "parked" if parked else "will try again",
        event.id,
        event.topic,
        event.delivery,
        clean(kind_and_text(told.type, told.message)),
    )
