"""Facts become counts: by queue and job, never by an id, and never without a bound."""

from __future__ import annotations

from fencerow.core.telemetry import FIELDS, Fact, Telemetry
from fencerow.metrics import names
from fencerow.metrics.counting import Counting
from fencerow.metrics.names import METRICS

ATTEMPT = {"job_id": "0193", "job": "send", "queue": "mail", "attempt": 1}


def test_what_became_of_attempts_is_counted_by_queue_and_job() -> None:
    telemetry = Telemetry()
    counting = Counting(telemetry, 100)

    telemetry.emit(Fact.SUCCEEDED, **ATTEMPT, duration_s=0.3)
    telemetry.emit(Fact.RETRIED, **ATTEMPT, duration_s=7.0, delay_s=1.0)
    telemetry.emit(Fact.STOPPED, **ATTEMPT, duration_s=0.0)
    telemetry.emit(Fact.STARTED, **ATTEMPT, waited_s=0.004)
    telemetry.emit(Fact.SUBMITTED, job="send", queue="mail", count=5, replayed=2, replaced=1)
    telemetry.emit(Fact.WEBHOOK_SENT, outcome="status_503", status=503, duration_s=0.1)
    counts = counting.snapshot()
    counting.close()
    telemetry.emit(Fact.SUCCEEDED, **ATTEMPT, duration_s=0.3)

    sent = "mail", "send"
    assert counts.numbers[names.FINISHED] == {(*sent, "succeeded"): 1, (*sent, "cancelled"): 1}
    assert counts.numbers[names.RETRIES] == {sent: 1}
    submits = {(*sent, "inserted"): 3, (*sent, "existing"): 1, (*sent, "replaced"): 1}
    assert counts.numbers[names.SUBMITS] == submits
    assert counts.numbers[names.WEBHOOKS] == {("status_5xx",): 1}
    ran = counts.histograms[names.DURATION][sent]
    assert (sum(ran.counts), ran.counts[names.SHORT_S.index(0.5)], ran.sum) == (2, 1, 7.3)
    assert counts.histograms[names.LATENCY][sent].counts[0] == 1
    assert counting.snapshot().numbers[names.FINISHED] == counts.numbers[names.FINISHED], "it was closed"


def test_names_without_end_become_other_and_that_is_counted() -> None:
    telemetry = Telemetry()
    counting = Counting(telemetry, 10)

    for number in range(25):
        telemetry.emit(Fact.CLAIMED, queue=f"customer-{number}", count=2, duration_s=0.0)
    counts = counting.snapshot()
    counting.close()

    claimed = counts.numbers[names.CLAIMED]
    assert (len(claimed), claimed[("other",)], sum(claimed.values())) == (11, 30, 50)
    assert counts.numbers[names.OVERFLOWED] == {("queue",): 15}


def test_every_fact_that_is_counted_has_the_fields_that_it_needs() -> None:
    """Were one renamed, a listener would fail on each such fact, and nothing would be counted."""
    telemetry = Telemetry()
    counting = Counting(telemetry, 100)
    texts = {
        "job",
        "queue",
        "outcome",
        "state",
        "group",
        "topic",
        "code",
        "loop",
        "job_id",
        "worker",
        "reason",
    }

    for fact, fields in FIELDS.items():
        telemetry.emit(fact, **{field: "x" if field in texts else 1 for field in fields})
    failures = counting.snapshot().numbers[names.LISTENER_FAILURES]
    counting.close()

    assert failures == {(): 0}


def test_no_label_is_an_id_and_units_stand_in_the_names() -> None:
    labels = {label for metric in METRICS for label in metric.labels}
    assert labels == {"queue", "job", "state", "outcome", "code", "loop", "group", "label", "relay"}
    assert all(metric.name.startswith("fencerow_") for metric in METRICS)
    assert all(metric.name.endswith("_total") == (metric.kind == "counter") for metric in METRICS)
    assert len({metric.name for metric in METRICS}) == len(METRICS)
