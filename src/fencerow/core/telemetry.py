"""Facts with measured fields, and counters. A listener can never break the one who emits.

Integrations (metrics, traces, logs) listen; the rest of the product only emits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from fencerow.db.text import clean

logger = logging.getLogger("fencerow.telemetry")

Listener = Callable[[str, Mapping[str, Any]], None]
Unsubscribe = Callable[[], None]


class Fact(StrEnum):
    """The names of facts: what happened in this process. `FIELDS` lists what each carries."""

    SUBMITTED = "submitted"
    CLAIMED = "claimed"
    SWEPT = "swept"
    TURNS_SWEPT = "turns_swept"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRIED = "retried"
    SNOOZED = "snoozed"
    RELEASED = "released"
    STOPPED = "stopped"
    CRASHED = "crashed"
    SUSPENDED = "suspended"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    RECLAIMED = "reclaimed"
    TIMED_OUT = "timed_out"
    WORKER_DIED = "worker_died"
    REAPED = "reaped"
    LEASE_LOST = "lease_lost"
    RENEWED = "renewed"
    REFUSED = "refused"
    PAYLOAD_ALTERED = "payload_altered"
    SCHEDULED = "scheduled"
    PRUNED = "pruned"
    PERIOD_ENDED = "period_ended"
    PERIODS_SHORT = "periods_short"
    WORKER_STARTED = "worker_started"
    WORKER_CHANGED = "worker_changed"
    WORKER_STOPPED = "worker_stopped"
    LOOP_ERROR = "loop_error"
    LOOP_BLOCKED = "loop_blocked"
    EVENT_DELIVERED = "event_delivered"
    EVENT_FAILED = "event_failed"
    EVENT_PARKED = "event_parked"
    EVENTS_PLACED = "events_placed"
    EVENTS_LAG = "events_lag"
    EVENTS_AT_RISK = "events_at_risk"
    EVENTS_TRIMMED = "events_trimmed"
    WEBHOOK_SENT = "webhook_sent"
    SESSION_ENDED = "session_ended"


_ATTEMPT = ("job_id", "job", "queue", "attempt")
_ENDED = (*_ATTEMPT, "duration_s")

# What every fact of that name carries. More may come; a listener must not mind.
FIELDS: Mapping[Fact, tuple[str, ...]] = {
    Fact.SUBMITTED: ("job", "queue", "count", "replayed", "replaced"),
    Fact.CLAIMED: ("queue", "count", "duration_s"),
    # Jobs that no wake-up told of and that were due for a while: a look from the beginning of the lanes found them.
    Fact.SWEPT: ("job", "queue", "count"),
    # Turns that no arrival told of: only the sweep gave them.
    Fact.TURNS_SWEPT: ("queue", "count"),
    # A slot takes the attempt. `waited_s`: since the job was due, by the database's clock; None where that is unknown.
    Fact.STARTED: (*_ATTEMPT, "waited_s"),
    Fact.SUCCEEDED: _ENDED,
    Fact.FAILED: (*_ENDED, "code"),
    Fact.RETRIED: (*_ENDED, "delay_s"),
    Fact.SNOOZED: (*_ENDED, "delay_s"),
    Fact.RELEASED: (*_ATTEMPT, "reason"),
    Fact.STOPPED: _ENDED,
    Fact.CRASHED: (*_ENDED, "reason"),
    Fact.SUSPENDED: _ENDED,
    Fact.CANCELLED: ("count",),
    Fact.EXPIRED: ("count",),
    Fact.RECLAIMED: ("count", "worker"),
    Fact.TIMED_OUT: ("count",),
    Fact.WORKER_DIED: ("worker",),
    # What the reaper ended or took back, by what it became.
    Fact.REAPED: ("state", "count"),
    Fact.LEASE_LOST: _ATTEMPT,
    Fact.RENEWED: ("worker", "duration_s"),
    Fact.REFUSED: ("code",),
    Fact.PAYLOAD_ALTERED: ("job_id", "what"),
    Fact.SCHEDULED: ("schedule", "count"),
    Fact.PRUNED: ("state", "count"),
    Fact.PERIOD_ENDED: ("state", "partition"),
    Fact.PERIODS_SHORT: ("state", "ahead"),
    Fact.WORKER_STARTED: ("worker",),
    Fact.WORKER_CHANGED: ("worker", "version"),
    Fact.WORKER_STOPPED: ("worker", "reason"),
    Fact.LOOP_ERROR: ("loop", "error"),
    Fact.LOOP_BLOCKED: ("seconds", "job_id", "job", "where"),
    Fact.EVENT_DELIVERED: ("group", "topic", "deliveries", "duration_s"),
    Fact.EVENT_FAILED: ("group", "topic", "code"),
    Fact.EVENT_PARKED: ("group", "topic", "code"),
    Fact.EVENTS_PLACED: ("count", "duration_s"),
    Fact.EVENTS_LAG: ("group", "events", "seconds"),
    Fact.EVENTS_AT_RISK: ("group", "events", "seconds"),
    Fact.EVENTS_TRIMMED: ("count",),
    # One POST of a webhook. `outcome`: delivered, or why it failed; `status`: the answer's, None where none came.
    Fact.WEBHOOK_SENT: ("outcome", "status", "duration_s"),
    # A session of somebody that held back the database's horizon, ended because a policy says so.
    Fact.SESSION_ENDED: ("pid", "application", "seconds"),
}


class Counters:
    """Numbers that only grow, by name. Safe to use from any thread."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1) -> int:
        """Count `count` more, and return the new number."""
        with self._lock:
            value = self._values.get(name, 0) + count
            self._values[name] = value
            return value

    def get(self, name: str) -> int:
        """The number so far."""
        with self._lock:
            return self._values.get(name, 0)


class Telemetry:
    """Hands facts to whoever listens, on the thread that emits. Next to free without listeners."""

    def __init__(self) -> None:
        # Replaced as a whole, never changed, so that emit needs no lock.
        self._listeners: tuple[tuple[object, Listener], ...] = ()
        self._lock = threading.Lock()
        # Whether anybody listens: fields that are costly to gather need not be gathered for nobody.
        self.is_heard = False
        self.counters = Counters()

    @property
    def failures(self) -> int:
        """How often a listener raised."""
        return self.counters.get("listener_failures")

    def emit(self, name: str, /, **fields: Any) -> None:
        """Tell the listeners. Each gets its own copy of the fields; one that raises is logged and counted."""
        for _, listener in self._listeners:
            try:
                listener(name, dict(fields))
            except Exception:
                self.counters.add("listener_failures")
                logger.exception("a listener failed on the fact %s", clean(str(name)))

    def listen(self, callback: Listener) -> Unsubscribe:
        """Call `callback(name, fields)` for each fact from now on, until the returned function is called.

        Listeners are called in the order they came. They should be quick: the emitter waits for them.
        """
        mark = object()
        with self._lock:
            self._listeners = (*self._listeners, (mark, callback))
            self.is_heard = True

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(each for each in self._listeners if each[0] is not mark)
                self.is_heard = bool(self._listeners)

        return unsubscribe
