"""Looks at the database for all who ask, one look at a time, in a thread: who asks waits for it, but not for long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from fencerow.db.text import said_of
from fencerow.metrics.looking import MetricsSeen

log = logging.getLogger("fencerow.metrics")


@dataclass(frozen=True, slots=True)
class LatestLook:
    """The latest look that was made in time; `seen` is None where there is none. `took_s`: how long it took, or has
    taken so far."""

    seen: MetricsSeen | None
    took_s: float
    age_s: float


class MetricsLooker:
    """`ask` looks once. What it found serves for `interval_s` seconds; who asks waits `patience_s` at most."""

    def __init__(self, ask: Callable[[], MetricsSeen], *, interval_s: float, patience_s: float) -> None:
        self._ask = ask
        self._interval_s = interval_s
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._is_looking = False
        self._began_at = 0.0  # the look that is under way, or the last one
        self._took_s = 0.0
        self._seen: MetricsSeen | None = None
        self._seen_at = 0.0
        self._trouble: str | None = None

    def found(self) -> LatestLook:
        """What the database looks like, as of `interval_s` seconds ago at most; without `seen` if that is not known."""
        until = time.monotonic() + self._patience_s
        with self._changed:
            if not self._is_fresh() and not self._is_looking and not self._has_just_failed():
                self._start()
            while self._is_looking and not self._is_fresh():
                if (left_s := until - time.monotonic()) <= 0:
                    break
                self._changed.wait(left_s)
            now = time.monotonic()
            took_s = now - self._began_at if self._is_looking else self._took_s
            return LatestLook(self._seen if self._is_fresh() else None, took_s, now - self._seen_at)

    def _is_fresh(self) -> bool:
        return self._seen is not None and time.monotonic() - self._seen_at < self._interval_s

    def _has_just_failed(self) -> bool:
        """A database in trouble is not asked more often than one that answers."""
        return self._trouble is not None and time.monotonic() - self._began_at < self._interval_s

    def _start(self) -> None:
        self._is_looking, self._began_at = True, time.monotonic()
        # A daemon: one that hangs in the database must not keep the process from its end.
        threading.Thread(target=self._look, name="fencerow-metrics", daemon=True).start()

    def _look(self) -> None:
        seen, trouble = None, None
        try:
            seen = self._ask()
        except Exception as error:
            trouble = said_of(error)
        with self._changed:
            if trouble is not None and self._trouble is None:
                log.warning("the database could not be looked at for metrics: %s", trouble)
            self._is_looking, self._trouble = False, trouble
            self._took_s = time.monotonic() - self._began_at
            if seen is not None:
                self._seen, self._seen_at = seen, time.monotonic()
            self._changed.notify_all()
