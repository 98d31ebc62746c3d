"""From what was counted and seen to the families of prometheus-client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family

import fencerow.metrics.names as names
from fencerow.core.worker.vitals import Vitals
from fencerow.metrics.counting import Counts, Values
from fencerow.metrics.labels import OTHER
from fencerow.metrics.looker import LatestLook
from fencerow.metrics.looking import MetricsSeen
from fencerow.metrics.names import COUNTED, Metric, MetricKind
from fencerow.metrics.zeros import Zeros

TOTAL = "_total"
FLOWS = (names.FLOWS, names.FLOWS_UNTOLD, names.FLOWS_STUCK, names.CALLBACKS_REFUSED)
K = TypeVar("K", bound=tuple[str, ...])


def counted_families(counts: Counts) -> Iterator[Family]:
    """What a process counts of its own work. A metric without labels is there from the start, as 0."""
    for metric in COUNTED:
        if metric.kind is MetricKind.HISTOGRAM:
            yield _histogram(metric, counts)
        else:
            values = counts.numbers.get(metric, {})
            yield _counter(metric, values or ({} if metric.labels else {(): 0.0}))


def worker_families(vitals: Vitals) -> Iterator[Family]:
    """How the worker of this process is."""
    busy = min(vitals.running, vitals.slots)
    yield _gauge(names.SLOTS, {("busy",): busy, ("free",): vitals.slots - busy})
    yield _gauge(names.READY, {(): vitals.is_ready})


def database_families(found: LatestLook, values_max: int, zeros: Zeros) -> Iterator[Family]:
    """What the last look saw, if it was made in time; and in any case whether it was."""
    if found.seen is not None:
        yield from _jobs(found.seen, values_max, zeros)
        yield from _seen(found.seen, values_max)
        yield _gauge(names.LOOK_AGE_S, {(): found.age_s})
    yield _gauge(names.LOOK_UP, {(): found.seen is not None})
    yield _gauge(names.LOOK_S, {(): found.took_s})


def _jobs(seen: MetricsSeen, values_max: int, zeros: Zeros) -> Iterator[Family]:
    """What falls to 0 when a queue is empty, nothing runs, or what was paused goes on."""

    def gauge(metric: Metric, values: Mapping[K, float], *, most: bool = False) -> Family:
        return _gauge(metric, zeros.filled(metric.name, values), values_max, most=most)

    yield gauge(names.JOBS, seen.jobs)
    yield gauge(names.CAPPED, {key: key in seen.capped for key in seen.jobs}, most=True)
    oldest_queued = {(queue,): age_s for queue, age_s in seen.oldest_queued_s.items()}
    yield gauge(names.OLDEST_QUEUED, oldest_queued, most=True)
    yield gauge(names.OLDEST_RUNNING, seen.oldest_running_s, most=True)
    yield gauge(names.PAUSED_QUEUE, {(queue,): 1 for queue in seen.paused_queues})
    yield gauge(names.PAUSED_SCHEDULES, {(job,): n for job, n in seen.paused_schedules.items()})


def _seen(seen: MetricsSeen, values_max: int) -> Iterator[Family]:
    yield _gauge(names.WORKERS, {("alive",): seen.workers, ("late",): seen.late_workers})
    yield _gauge(names.LAG, {(each.group,): each.seconds for each in seen.lags}, values_max, most=True)
    yield _gauge(names.LAG_EVENTS, {(each.group,): each.events for each in seen.lags}, values_max)
    yield _gauge(names.PARKED, {(each.group,): each.parked for each in seen.lags}, values_max)
    takes = [each for each in seen.relays if each.direction == "in"]
    yield _gauge(names.RELAY_LAG, {(each.name,): each.lag or 0 for each in takes}, values_max)
    yield _gauge(
        names.RELAY_WAITS, {(each.name,): each.waits_s for each in seen.relays}, values_max, most=True
    )
    yield _gauge(names.RELAY_UNREAD, {(each.name,): each.unread for each in takes}, values_max)
    for metric, number in zip(FLOWS, seen.flows, strict=True):
        yield _gauge(metric, {(): number})
    yield _gauge(names.OUTBOX_LAG, {(): max((each.unplaced_s for each in seen.lags), default=0.0)})
    if seen.lock_waits is not None:
        yield _gauge(names.LOCK_WAITS, {(): seen.lock_waits})
    if seen.oldest_snapshot_s is not None:
        yield _gauge(names.OLDEST_SNAPSHOT, {(): seen.oldest_snapshot_s})


def _counter(metric: Metric, values: Mapping[Values, float]) -> Family:
    family = CounterMetricFamily(metric.name.removesuffix(TOTAL), metric.help, labels=metric.labels)
    for each, number in values.items():
        family.add_metric(each, number)
    return family


def _gauge(
    metric: Metric, values: Mapping[K, float], values_max: int | None = None, *, most: bool = False
) -> Family:
    """`most`: of what is beyond `values_max` the most counts, not the sum."""
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for each, number in _bounded(values, values_max, most=most):
        family.add_metric(each, number)
    return family


def _bounded(
    values: Mapping[K, float], values_max: int | None, *, most: bool
) -> Iterable[tuple[tuple[str, ...], float]]:
    """Those of the first `values_max` names, and one line `other` for each state of the rest."""
    if values_max is None or len(values) <= values_max:
        return values.items()
    kept: dict[Values, float] = {}
    known = set(sorted({each[0] for each in values})[:values_max])
    for each, number in values.items():
        key = each if each[0] in known else (OTHER, *each[1:])
        before = kept.get(key, 0.0)
        kept[key] = max(before, number) if most else before + number
    return kept.items()


def _histogram(metric: Metric, counts: Counts) -> Family:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    bounds = [*map(str, metric.bounds), "+Inf"]
    for each, found in counts.histograms.get(metric, {}).items():
        buckets = list(zip(bounds, accumulate(found.counts), strict=True))
        family.add_metric(each, buckets, sum_value=found.sum)
    return family
