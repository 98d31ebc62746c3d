"""Counts the facts of this process, from whatever thread they come. It knows no library and does no I/O."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fencerow.metrics.names as names
from fencerow.core.telemetry import Fact, Telemetry, Unsubscribe
from fencerow.metrics.labels import Labels
from fencerow.metrics.names import Metric, MetricKind

FINISHED = {Fact.SUCCEEDED: "succeeded", Fact.FAILED: "failed", Fact.STOPPED: "cancelled"}
ENDED = (*FINISHED, Fact.RETRIED, Fact.SNOOZED, Fact.SUSPENDED, Fact.RELEASED, Fact.CRASHED, Fact.LEASE_LOST)
DELIVERIES = {
    Fact.EVENT_DELIVERED: "delivered",
    Fact.EVENT_FAILED: "failed",
    Fact.EVENT_PARKED: "parked",
}
STATUS = "status_"

Values = tuple[str, ...]


@dataclass(slots=True)
class Histogram:
    """How many values fell into each bucket, and their sum."""

    counts: list[int]
    sum: float = 0.0


@dataclass(slots=True)
class Counts:
    """What was counted so far, by the values of the labels."""

    numbers: dict[Metric, dict[Values, float]] = field(default_factory=dict)
    histograms: dict[Metric, dict[Values, Histogram]] = field(default_factory=dict)


class Counting:
    """Listens to a telemetry and counts. `values_max`: how many values a label may have."""

    def __init__(self, telemetry: Telemetry, values_max: int) -> None:
        self._telemetry = telemetry
        self._lock = threading.Lock()
        self._counts = Counts()
        self._labels = Labels(values_max, lambda label: self._plain(names.OVERFLOWED, 1, label))
        self._by_fact = self._rules()
        self._stop: Unsubscribe = telemetry.listen(self._hear)

    def close(self) -> None:
        """Count no more. It may be repeated."""
        self._stop()

    def snapshot(self) -> Counts:
        """All counts, as they were at one instant."""
        with self._lock:
            numbers = {metric: dict(values) for metric, values in self._counts.numbers.items()}
            histograms = {
                metric: {each: Histogram(list(found.counts), found.sum) for each, found in values.items()}
                for metric, values in self._counts.histograms.items()
            }
        numbers[names.LISTENER_FAILURES] = {(): self._telemetry.failures}
        return Counts(numbers, histograms)

    def _hear(self, name: str, facts: Mapping[str, Any]) -> None:
        rule = self._by_fact.get(name)
        if rule is not None:
            with self._lock:
                rule(facts)

    # --- under the lock ----------------------------------------------------------------------------------

    def _rules(self) -> dict[str, Callable[[Mapping[str, Any]], None]]:
        count = self._count
        rules: dict[str, Callable[[Mapping[str, Any]], None]] = {
            Fact.SUBMITTED: self._submitted,
            Fact.REFUSED: lambda facts: count(names.REFUSED, 1, facts["code"]),
            Fact.CLAIMED: lambda facts: count(names.CLAIMED, facts["count"], facts["queue"]),
            Fact.SWEPT: lambda facts: count(names.SWEPT, facts["count"], facts["queue"], facts["job"]),
            Fact.TURNS_SWEPT: lambda facts: count(names.TURNS_SWEPT, facts["count"], facts["queue"]),
            Fact.STARTED: self._started,
            Fact.WORKER_DIED: lambda _: count(names.EXPIRED_LEASES, 1),
            Fact.REAPED: lambda facts: count(names.REAPED, facts["count"], facts["state"]),
            Fact.LOOP_ERROR: lambda facts: count(names.LOOP_ERRORS, 1, facts["loop"]),
            Fact.LOOP_BLOCKED: lambda facts: count(names.LOOP_BLOCKED, 1, facts["job"] or "none"),
            Fact.RENEWED: lambda _: count(names.RENEWED, 1),
            Fact.WEBHOOK_SENT: self._sent,
            Fact.SESSION_ENDED: lambda _: count(names.SESSIONS_ENDED, 1),
        }
        rules |= {each: self._ended(each) for each in ENDED}
        rules |= {each: self._handled(outcome) for each, outcome in DELIVERIES.items()}
        return rules

    def _submitted(self, facts: Mapping[str, Any]) -> None:
        replaced, existing = facts["replaced"], facts["replayed"]
        existing -= min(replaced, existing)  # what replaced an earlier job found one, too
        inserted = facts["count"] - replaced - existing
        for outcome, number in (("inserted", inserted), ("existing", existing), ("replaced", replaced)):
            if number > 0:
                self._count(names.SUBMITS, number, facts["queue"], facts["job"], outcome)

    def _started(self, facts: Mapping[str, Any]) -> None:
        if facts["waited_s"] is not None:
            self._observe(names.LATENCY, facts["waited_s"], facts["queue"], facts["job"])

    def _ended(self, fact: Fact) -> Callable[[Mapping[str, Any]], None]:
        final = FINISHED.get(fact)

        def ended(facts: Mapping[str, Any]) -> None:
            queue, job = facts["queue"], facts["job"]
            self._count(names.ATTEMPTS, 1, queue, job, fact.value)
            if final is not None:
                self._count(names.FINISHED, 1, queue, job, final)
            if fact is Fact.RETRIED:
                self._count(names.RETRIES, 1, queue, job)
            if facts.get("duration_s"):  # what did not start took no time
                self._observe(names.DURATION, facts["duration_s"], queue, job)

        return ended

    def _handled(self, outcome: str) -> Callable[[Mapping[str, Any]], None]:
        return lambda facts: self._count(names.DELIVERED, 1, facts["group"], outcome)

    def _sent(self, facts: Mapping[str, Any]) -> None:
        outcome = facts["outcome"]
        if outcome.startswith(STATUS):
            outcome = f"{STATUS}{outcome[len(STATUS)]}xx"
        self._count(names.WEBHOOKS, 1, outcome)

    def _count(self, metric: Metric, number: float, *given: str) -> None:
        self._plain(metric, number, *self._bounded(metric, given))

    def _plain(self, metric: Metric, number: float, *values: str) -> None:
        found = self._counts.numbers.setdefault(metric, {})
        found[values] = found.get(values, 0) + number

    def _observe(self, metric: Metric, seconds: float, *given: str) -> None:
        assert metric.kind is MetricKind.HISTOGRAM
        values = self._bounded(metric, given)
        of_metric = self._counts.histograms.setdefault(metric, {})
        found = of_metric.get(values)
        if found is None:
            found = of_metric[values] = Histogram([0] * (len(metric.bounds) + 1))
        found.counts[bisect_left(metric.bounds, seconds)] += 1
        found.sum += seconds

    def _bounded(self, metric: Metric, given: Values) -> Values:
        return tuple(map(self._labels.bounded, metric.labels, given))
