"""The table of all metrics: their names are a promise, so each stands here once, and the guide prints them.

No label is ever an id. Names of jobs and queues are labels up to a bound, see `labels.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MetricKind(StrEnum):
    """What Prometheus is told a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `bounds`: the upper bounds of a histogram's buckets, in seconds; the last one is infinity."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    help: str
    bounds: tuple[float, ...] = ()


SHORT_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
_JOB = ("queue", "job")

# What a process counts of its own work, from facts. Sum them over all processes.
SUBMITS = Metric(
    "fencerow_submits_total",
    _C,
    (*_JOB, "outcome"),
    "Submits, by what they came to: inserted, existing (a repeat), replaced.",
)
REFUSED = Metric(
    "fencerow_submits_refused_total",
    _C,
    ("code",),
    "Submits that were refused before the database was asked, by the code of the error.",
)
CLAIMED = Metric("fencerow_jobs_claimed_total", _C, ("queue",), "Jobs that workers took from their queue.")
SWEPT = Metric(
    "fencerow_jobs_swept_total",
    _C,
    _JOB,
    "Claimed jobs that no wake-up told of: only a sweep found them, after they had been due for a second.",
)
TURNS_SWEPT = Metric(
    "fencerow_turns_swept_total",
    _C,
    ("queue",),
    "Turns of exclusive keys and limits that no arrival told of: only a sweep of the gates gave them.",
)
FINISHED = Metric(
    "fencerow_jobs_finished_total",
    _C,
    (*_JOB, "outcome"),
    "Jobs that ended in a worker: succeeded, failed or cancelled.",
)
ATTEMPTS = Metric(
    "fencerow_attempts_total",
    _C,
    (*_JOB, "outcome"),
    "Attempts that were over: succeeded, failed, retried, snoozed, suspended, released, stopped, crashed, lease_lost.",
)
RETRIES = Metric(
    "fencerow_retries_scheduled_total",
    _C,
    _JOB,
    "Failures after which the job was queued for another attempt.",
)
DURATION = Metric("fencerow_job_duration_seconds", _H, _JOB, "How long attempts ran.", SHORT_S)
LATENCY = Metric(
    "fencerow_queue_latency_seconds", _H, _JOB, "How long a job had been due when a slot took it.", SHORT_S
)
EXPIRED_LEASES = Metric("fencerow_leases_expired_total", _C, (), "Workers that this process declared dead.")
REAPED = Metric(
    "fencerow_reaped_total",
    _C,
    ("state",),
    "Jobs that this process took back from the dead, or ended past their time, by what they became.",
)
LOOP_ERRORS = Metric(
    "fencerow_loop_errors_total", _C, ("loop",), "Errors of the background work of a worker."
)
LOOP_BLOCKED = Metric(
    "fencerow_loop_blocked_total",
    _C,
    ("job",),
    "How often an event loop did not answer, by the job that kept it.",
)
RENEWED = Metric("fencerow_lease_renewals_total", _C, (), "Renewals of this worker's lease.")
DELIVERED = Metric(
    "fencerow_events_delivered_total",
    _C,
    ("group", "outcome"),
    "Deliveries of events: delivered, failed or parked.",
)
WEBHOOKS = Metric(
    "fencerow_webhook_attempts_total",
    _C,
    ("outcome",),
    "POSTs of webhooks: delivered, a class of answers such as status_5xx, or why there was none.",
)
SESSIONS_ENDED = Metric(
    "fencerow_sessions_ended_total",
    _C,
    (),
    "Sessions that held back the database's horizon, and were ended because `horizon_end_allow` names them.",
)
SLOTS = Metric("fencerow_worker_slots", _G, ("state",), "Slots of the worker in this process: busy or free.")
READY = Metric("fencerow_worker_ready", _G, (), "Whether the worker in this process takes jobs.")
LISTENER_FAILURES = Metric(
    "fencerow_listener_failures_total", _C, (), "Facts that a listener of this process failed on."
)
OVERFLOWED = Metric(
    "fencerow_labels_overflowed_total",
    _C,
    ("label",),
    "How often a name was counted as `other`, because there were too many.",
)

# What one look at the database found. Every process says the same: take their maximum, never their sum.
JOBS = Metric(
    "fencerow_jobs",
    _G,
    ("queue", "state"),
    "Live jobs: due, later, running or waiting. Counting stops at a bound: see fencerow_jobs_capped.",
)
CAPPED = Metric(
    "fencerow_jobs_capped",
    _G,
    ("queue", "state"),
    "1 where fencerow_jobs stopped counting at its bound: there are more.",
)
OLDEST_QUEUED = Metric(
    "fencerow_oldest_queued_age_seconds",
    _G,
    ("queue",),
    "For how long the first due job of the queue has been due, over all its priorities.",
)
OLDEST_RUNNING = Metric(
    "fencerow_oldest_running_age_seconds",
    _G,
    _JOB,
    "For how long the attempt that has run longest has been running.",
)
PAUSED_QUEUE = Metric("fencerow_queue_paused", _G, ("queue",), "1 for each queue that is paused.")
PAUSED_SCHEDULES = Metric("fencerow_schedules_paused", _G, ("job",), "Schedules that are paused.")
WORKERS = Metric(
    "fencerow_workers",
    _G,
    ("state",),
    "Workers that are alive, and of these apart those that are late: their lease is over.",
)
LAG = Metric(
    "fencerow_events_lag_seconds",
    _G,
    ("group",),
    "The age of the first event that a group has not acknowledged.",
)
LAG_EVENTS = Metric(
    "fencerow_events_lag",
    _G,
    ("group",),
    "Events that a group has not acknowledged; counting stops at 10,000 for a partition.",
)
PARKED = Metric(
    "fencerow_events_parked", _G, ("group",), "Events that a group gave up and keeps, counted up to 10,000."
)
RELAY_LAG = Metric(
    "fencerow_relay_lag",
    _G,
    ("relay",),
    "Messages of a broker that a relay has not taken, when it asked last; of one that sends see fencerow_events_lag.",
)
RELAY_WAITS = Metric(
    "fencerow_relay_waits_seconds",
    _G,
    ("relay",),
    "For how long a relay has waited for a broker that is away; 0: it goes on.",
)
RELAY_UNREAD = Metric("fencerow_relay_unread", _G, ("relay",), "Messages that a relay could not read so far.")
FLOWS = Metric("fencerow_flows_live", _G, (), "Flows that have not ended, counted up to 10,000.")
FLOWS_UNTOLD = Metric(
    "fencerow_flow_ends_untold",
    _G,
    (),
    "Jobs of flows that ended over a minute ago, and nobody has looked at those that wait for them; up to 10,000.",
)
FLOWS_STUCK = Metric(
    "fencerow_flows_stuck",
    _G,
    (),
    "Flows of which jobs wait that nobody is left to wake, among the 200 oldest that have not ended.",
)
CALLBACKS_REFUSED = Metric(
    "fencerow_flow_callbacks_refused", _G, (), "Callbacks of flows that could not be submitted, up to 200."
)
OUTBOX_LAG = Metric(
    "fencerow_outbox_lag_seconds",
    _G,
    (),
    "The age of the first event that has no position yet: no reader can see it.",
)
LOCK_WAITS = Metric(
    "fencerow_lock_waits", _G, (), "Sessions of this database that wait for a lock now. PostgreSQL only."
)
OLDEST_SNAPSHOT = Metric(
    "fencerow_oldest_snapshot_age_seconds",
    _G,
    (),
    "For how long the oldest transaction of this database has held back its horizon. PostgreSQL only.",
)
LOOK_UP = Metric(
    "fencerow_database_look_up",
    _G,
    (),
    "1 if the last look at the database was made in time; else its metrics are missing here.",
)
LOOK_S = Metric("fencerow_database_look_seconds", _G, (), "How long that look took, or has taken so far.")
LOOK_AGE_S = Metric("fencerow_database_look_age_seconds", _G, (), "How old what it found is.")

COUNTED: Final = (
    SUBMITS,
    REFUSED,
    CLAIMED,
    SWEPT,
    TURNS_SWEPT,
    FINISHED,
    ATTEMPTS,
    RETRIES,
    DURATION,
    LATENCY,
    EXPIRED_LEASES,
    REAPED,
    LOOP_ERRORS,
    LOOP_BLOCKED,
    RENEWED,
    DELIVERED,
    WEBHOOKS,
    SESSIONS_ENDED,
    LISTENER_FAILURES,
    OVERFLOWED,
)
OF_WORKER: Final = (SLOTS, READY)
OF_DATABASE: Final = (
    JOBS,
    CAPPED,
    OLDEST_QUEUED,
    OLDEST_RUNNING,
    PAUSED_QUEUE,
    PAUSED_SCHEDULES,
    WORKERS,
    LAG,
    LAG_EVENTS,
    PARKED,
    RELAY_LAG,
    RELAY_WAITS,
    RELAY_UNREAD,
    FLOWS,
    FLOWS_UNTOLD,
    FLOWS_STUCK,
    CALLBACKS_REFUSED,
    OUTBOX_LAG,
    LOCK_WAITS,
    OLDEST_SNAPSHOT,
    LOOK_UP,
    LOOK_S,
    LOOK_AGE_S,
)
METRICS: Final = (*COUNTED, *OF_WORKER, *OF_DATABASE)
