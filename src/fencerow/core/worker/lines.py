"""The log of jobs: one line when an attempt starts, and one when it has ended, each with its fields beside its text.

They come from the loggers `fencerow.job` and, for what a handler says by `job.log`, `fencerow.job.log`.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from types import MappingProxyType

from fencerow.core.config import CoreConfig
from fencerow.core.log_fields import CORRELATION
from fencerow.core.model.describe import ErrorRecord, FailureCode
from fencerow.core.model.outcome import (
    Crashed,
    Failed,
    Outcome,
    Released,
    Retried,
    Snoozed,
    Stopped,
    Suspended,
)
from fencerow.core.store.outcomes import RULES
from fencerow.core.telemetry import Fact
from fencerow.core.worker.attempt import Attempt, facts
from fencerow.db.strikes import sheltered
from fencerow.db.text import clean, kind_and_text

log = logging.getLogger("fencerow.job")
said_log = logging.getLogger("fencerow.job.log")

# The handler chose this end itself, and says why: where it did so helps nobody.
CHOSEN_CODES = frozenset({FailureCode.CHOSEN, FailureCode.SNOOZES_EXHAUSTED})
CHOSEN_TYPE = "fencerow.Retry"
FAULT_CODE = "worker_fault"  # told before, with every frame of ours
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
NOTHING: Mapping[str, object] = MappingProxyType({})
IDS_MAX = 5  # in one line


class JobLines:
    """Writes the log of jobs: what goes as it should at `level`, and failures always. From any thread.

    `place` says where the attempts run, if not in the worker's own process.
    """

    def __init__(self, level: int, place: str = "") -> None:
        self._level = level
        self._place = place

    @classmethod
    def of(cls, config: CoreConfig, place: str = "") -> JobLines:
        """As the setting `log_job_level` says."""
        return cls(logging.DEBUG if config.log_job_level == "debug" else logging.INFO, place)

    @property
    def are_wanted(self) -> bool:
        """Whether anybody reads of what goes as it should. All that a job costs if nobody does."""
        return log.isEnabledFor(self._level)

    def started(self, attempt: Attempt) -> None:
        """The handler starts."""
        if log.isEnabledFor(self._level):
            claimed = attempt.claimed
            text = "job %s (%s) attempt %d started%s, queue %s"
            given = (claimed.id, claimed.name, claimed.attempt, self._place, claimed.queue)
            log.log(self._level, text, *given, extra={**_about(attempt), "outcome": "started"})

    def ended(self, attempt: Attempt, outcome: Outcome, duration_s: float) -> None:
        """The database has confirmed how the attempt ended. Failures have been told before."""
        if isinstance(outcome, Failed | Retried | Crashed):
            return
        # What never started was no run: a worker that leaves tells of all such jobs in one line.
        level = self._level if attempt.started else logging.DEBUG
        if log.isEnabledFor(level):
            _say(level, attempt, outcome, duration_s, _ended(outcome, _after(attempt, duration_s)))

    def failed(self, attempt: Attempt, outcome: Failed | Retried, duration_s: float) -> None:
        """An attempt failed: at once, since the database may be the reason. The last failure at ERROR."""
        claimed, error = attempt.claimed, outcome.error
        level = logging.ERROR if isinstance(outcome, Failed) else logging.WARNING
        if log.isEnabledFor(level):
            if isinstance(outcome, Failed):
                what = f"failed for good {_after(attempt, duration_s)}"
            else:
                count = f"failure {claimed.failures + 1} of {claimed.attempts_max}"
                what = (
                    f"failed {_after(attempt, duration_s)} ({count}), next attempt in {outcome.delay_s:.1f} s"
                )
            what += f": {clean(kind_and_text(error.type, error.message))} [{error.code}]"
            more = {"code": error.code, "error": error.type}
            _say(level, attempt, outcome, duration_s, what, more, trace=_trace(error))

    def crashed(self, attempt: Attempt, outcome: Crashed, duration_s: float) -> None:
        """The child process of an attempt died."""
        if log.isEnabledFor(logging.ERROR):
            before = attempt.claimed.crashes
            after, reason = _after(attempt, duration_s), clean(outcome.reason)
            what = f"crashed {after}: {reason}; crashes before it: {before}"
            _say(logging.ERROR, attempt, outcome, duration_s, what)


class Tally:
    """How the attempts of one worker ended, as the database has confirmed it. Used on the event loop only."""

    def __init__(self) -> None:
        self._counts = Counter[Fact]()
        self._released_before = 0
        self._released = deque[str](maxlen=IDS_MAX)

    def add(self, counts: Counter[Fact], released: Iterable[str]) -> None:
        """These ended; `released` are the ids of those that went back to their queues."""
        self._counts.update(counts)
        self._released.extend(released)

    def leaves(self) -> None:
        """The worker leaves: what is released from now on is released because of that."""
        self._released_before = self._counts[Fact.RELEASED]
        self._released.clear()

    def told(self) -> str:
        """All that ended, and what was released at the end, in words."""
        counts = {fact: count for fact, count in self._counts.items() if fact is not Fact.RELEASED}
        ended = ", ".join(f"{count} {fact}" for fact, count in sorted(counts.items())) or "nothing"
        released = self._counts[Fact.RELEASED] - self._released_before
        return f"{ended}; {released} released at its end{listed(self._released, released)}"


def listed(ids: Iterable[str], count: int) -> str:
    """The ids of jobs for a line of the log: the first few of so many."""
    shown = list(islice(ids, IDS_MAX))
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return f": {', '.join(shown)}{more}" if shown else ""


def _about(attempt: Attempt) -> dict[str, object]:
    """Which job a line is about, and of which request that is, if the job says so."""
    correlation = (attempt.claimed.headers or {}).get(CORRELATION)
    return facts(attempt) if correlation is None else {**facts(attempt), "correlation_id": correlation}


@sheltered  # struck between a log handler's lock and its `try`, all of the process would wait at its next line
def mirror(attempt: Attempt, level: str, message: str) -> None:
    """What a handler keeps with its job is said in the log as well."""
    if said_log.isEnabledFor(LEVELS[level]):
        said_log.log(LEVELS[level], "%s", message, extra=_about(attempt))


def _after(attempt: Attempt, duration_s: float) -> str:
    return f"after {duration_s:.3f} s, queue {attempt.claimed.queue}"


def _ended(outcome: Outcome, after: str) -> str:
    match outcome:
        case Snoozed(delay_s, reason):
            return f"was snoozed for {delay_s:g} s {after}{_because(reason)}"
        case Suspended(reason):
            return f"was suspended {after}{_because(reason)}"
        case Released(reason, delay_s):
            pause = "" if delay_s is None else f" for {delay_s:g} s"
            return f"was released{pause} {after}{_because(reason)}"
        case Stopped(reason):
            return f"was cancelled {after}{_because(reason)}"
        case _:
            return f"succeeded {after}"


def _because(reason: str) -> str:
    return f": {clean(reason)}" if reason else ""


def _trace(error: ErrorRecord) -> str | None:
    if error.code in CHOSEN_CODES or error.type == CHOSEN_TYPE or error.code == FAULT_CODE:
        return None
    return "\n".join(clean(line) for line in error.traceback.splitlines()) or None


def _say(
    level: int,
    attempt: Attempt,
    outcome: Outcome,
    duration_s: float,
    what: str,
    more: Mapping[str, object] = NOTHING,
    trace: str | None = None,
) -> None:
    """Write a line, and below it a traceback that every formatter prints as it prints that of an error."""
    claimed = attempt.claimed
    fields = {
        **_about(attempt),
        "outcome": RULES[type(outcome)].event.value,
        "duration_s": round(duration_s, 6),
        **more,
    }
    given = (claimed.id, claimed.name, claimed.attempt, what)
    text = "job %s (%s) attempt %d %s"
    record = log.makeRecord(log.name, level, __file__, 0, text, given, None, None, fields)
    record.exc_text = trace
    log.handle(record)
