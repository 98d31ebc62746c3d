"""One attempt in this process: who asked it to end, why, and how far that went.

The order of interruption: the handler can see it (`job.cancelled`), then an exception is raised in it,
then it is given up: its outcome is reported without it, and the fence refuses what it still does.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from fencerow.core.errors import AttemptTimeout, CancelRequested, LeaseLost, TransactionMisuse
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import Claimed
from fencerow.db.strikes import Striker, arrived

LATE_S = 0.5  # what a busy machine does to an event loop that nobody blocks


class Interrupt(StrEnum):
    """Why an attempt was asked to end. The first reason stands."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    LOST = "lost"
    SHUTDOWN = "shutdown"
    HELD = "held"  # a transaction was held for longer than is safe on this engine


class AskedToStop(CancelRequested):
    """Raised in a plain handler that was asked to stop. It is made without arguments, by the interpreter."""

    def __init__(self) -> None:
        arrived()
        super().__init__("this attempt was asked to stop", "", "clean up and let this error pass through")


class OutOfTime(AttemptTimeout):
    """Raised in a plain handler that ran out of time."""

    def __init__(self) -> None:
        arrived()
        super().__init__("this attempt ran out of time", "", "clean up and let this error pass through")


class NoLongerHeld(LeaseLost):
    """Raised in a plain handler whose job is somebody else's."""

    def __init__(self) -> None:
        arrived()
        super().__init__("this attempt no longer holds its job", "", "stop working on it")


class HeldTooLong(TransactionMisuse):
    """Raised in a plain handler that keeps job.transaction() open for too long."""

    def __init__(self) -> None:
        arrived()
        super().__init__("job.transaction() was held for too long", "", "open it late and write quickly")


ERRORS: dict[Interrupt, type[BaseException]] = {
    Interrupt.CANCEL: AskedToStop,
    Interrupt.TIMEOUT: OutOfTime,
    Interrupt.LOST: NoLongerHeld,
    Interrupt.SHUTDOWN: AskedToStop,
    Interrupt.HELD: HeldTooLong,
}
_STARTS = threading.Lock()  # held for an instant: an attempt starts, or it is withdrawn


class Attempt:
    """A claimed job while this worker has it. Changed on the event loop, read from any thread."""

    # Most attempts never leave these: kept on the class, they cost nothing to make.
    started = 0.0
    deadline = math.inf  # when its time is up (monotonic seconds), once it has begun
    interrupt: Interrupt | None = None
    abandoned = False
    line_us: int | None = None  # claimed in a turn of its lane: it counts as due as early as the lane's first
    due_s: float | None = None  # since it was due, when it was claimed; gathered only where somebody listens
    crashed = False  # its child process died of its own doing
    overran = False  # it kept the event loop beyond its own deadline
    may_start = False  # it was let start here, and cannot be withdrawn any more
    is_over = False  # the handler has ended or was given up; its outcome may still have to be written
    _withdrawn = False
    _event: threading.Event | None = None
    _raise: Callable[[Interrupt], None] | None = None
    _give_up: Callable[[], object] | None = None
    _kill_s = 0.0
    _timers: tuple[asyncio.TimerHandle, ...] = ()

    def __init__(self, claimed: Claimed, holder: str, handler: Handler, taken: float | None = None) -> None:
        self.claimed = claimed
        self.key = claimed.id, claimed.attempt
        self.holder = holder
        self.handler = handler
        self.taken = time.monotonic() if taken is None else taken  # when it came from the database

    def __str__(self) -> str:
        """What the log calls it."""
        return f"job {self.claimed.id} ({self.claimed.name}) attempt {self.claimed.attempt}"

    @property
    def timeout_s(self) -> float | None:
        """The limit of this run: the job's own, as it was submitted."""
        return self.claimed.timeout_s

    @property
    def asked_to_end(self) -> bool:
        return self.interrupt is not None

    @property
    def thread_event(self) -> threading.Event:
        """Set when the attempt is asked to end: something a plain handler can wait for."""
        if self._event is None:  # made when wanted: it is dear, and few handlers wait for it
            self._event = threading.Event()
            if self.asked_to_end:
                self._event.set()
        return self._event

    def starts(self) -> bool:
        """Start it: from now on it cannot be withdrawn. False if it was."""
        with _STARTS:
            self.may_start = not self._withdrawn
            return self.may_start

    def withdraw(self) -> bool:
        """See to it that it never starts here; false if it has. From any thread."""
        with _STARTS:
            self._withdrawn = not self.may_start
            return self._withdrawn

    def begin(
        self, raise_in: Callable[[Interrupt], None], give_up: Callable[[], object], *, kill_s: float
    ) -> None:
        """The handler starts now. `raise_in` raises an exception in it; `give_up` goes on without it.

        A handler that ignores the exception for `kill_s` seconds is given up. Its time limit is watched from
        `limit_time` on.
        """
        self.started = time.monotonic()
        limit_s = self.claimed.timeout_s
        if limit_s is not None:
            self.deadline = self.started + limit_s
        self.is_over = False
        self._raise = raise_in
        self._give_up = give_up
        self._kill_s = kill_s

    def limit_time(self) -> None:
        """The handler waits for something: from now on it may have to be ended. Before, nothing could end it."""
        if self.timeout_s is not None:
            self._watch_time(self.deadline)

    def end(self, why: Interrupt, raise_s: float = 0.0) -> None:
        """Ask the attempt to end: visible now, an exception after `raise_s`, given up `kill_s` later."""
        if self.interrupt is not None and why is not Interrupt.LOST:
            return
        self.interrupt = why
        if self._event is not None:
            self._event.set()
        if self._raise is None:
            return  # not started: the executor looks before it starts
        if raise_s > 0:
            self._later(raise_s, lambda: self._interrupt(why))
        else:
            self._interrupt(why)
        self._later(raise_s + self._kill_s, self.give_up_now)

    def give_up_now(self) -> None:
        """Go on without the handler: it did not end when asked, or the worker leaves."""
        if self._give_up is not None:
            give_up, self.abandoned = self._give_up, True
            self.finish()
            give_up()

    def limit_hold(self, limit_s: float, is_open: Callable[[], bool]) -> None:
        """End the attempt if its transaction is still open after this long: others wait for it."""

        def end() -> None:
            if is_open():
                self.end(Interrupt.HELD)

        if self._raise is not None:
            self._later(limit_s, end)

    def finish(self) -> None:
        """The handler is over, one way or the other."""
        self.is_over = True
        self._raise = self._give_up = None
        for timer in self._timers:
            timer.cancel()
        self._timers = ()

    def _watch_time(self, due: float) -> None:
        self._later(max(0.0, due - time.monotonic()), lambda: self._time_is_up(due))

    def _time_is_up(self, due: float) -> None:
        """An async handler that could not run, since another one kept the event loop, gets as much time again."""
        late_s = time.monotonic() - due
        if late_s > LATE_S and self.handler.is_async and not self.overran:
            self._watch_time(time.monotonic() + late_s)
        else:
            self.end(Interrupt.TIMEOUT)

    def _interrupt(self, why: Interrupt) -> None:
        if self._raise is not None:
            self._raise(why)

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._timers += (asyncio.get_running_loop().call_later(delay_s, call),)


def thread_raiser(striker: Striker) -> Callable[[Interrupt], None]:
    """Raise in the thread that runs the handler."""

    def raise_in(why: Interrupt) -> None:
        striker.strike(ERRORS[why])

    return raise_in


def left_behind(striker: Striker, attempt: Attempt, give_up: Callable[[], None]) -> Callable[[], None]:
    """Give up a plain handler, and raise in its thread once more: what it went on with is for nothing.

    The first one may have been swallowed, by a finalizer that ran just then or by code that catches everything.
    """

    def leave() -> None:
        striker.strike(ERRORS[attempt.interrupt or Interrupt.LOST], again=True)
        give_up()

    return leave


def lease_lost(job_id: str, attempt: int) -> LeaseLost:
    """What a stale attempt is told."""
    return LeaseLost(
        f"attempt {attempt} no longer holds job {job_id}",
        "the job ended or belongs to a newer attempt",
        "stop working on it; nothing was changed",
    )


def facts(attempt: Attempt) -> dict[str, Any]:
    """What every event of an attempt carries."""
    claimed = attempt.claimed
    return {"job_id": claimed.id, "job": claimed.name, "queue": claimed.queue, "attempt": claimed.attempt}
