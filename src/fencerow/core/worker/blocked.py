"""Watches the event loop from a thread: says who blocks it, and ends the process where nothing else can.

A handler that blocks the loop can be interrupted by nobody, and neither its own time limit, nor a signal, nor the jobs
beside it come to their turn. This thread needs neither the loop nor the database to see that.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType

from msgspec import structs

from fencerow.core.errors import LoopBlocked
from fencerow.core.model.outcome import Crashed, Outcome, Released
from fencerow.core.model.wanted import Blocked
from fencerow.core.store.outcomes import WRITINGS
from fencerow.core.store.running import running
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Attempt, OutOfTime
from fencerow.core.worker.deciding import Decider
from fencerow.core.worker.keeper import Keeper
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.on_loop import OnLoop
from fencerow.core.worker.pending import Pending, batches
from fencerow.core.worker.roster import Key, Roster
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.db.loop_frames import context_in, waits_for_events
from fencerow.db.recent import Recent
from fencerow.db.service import Service
from fencerow.db.starved import ProcessorWait, is_starved
from fencerow.db.text import clean

log = logging.getLogger("fencerow.worker")

LOOK_S = 0.5
IDLE_LOOK_S = 1.0  # while no job is held
BLOCKED_S = 1.0  # from then on it is said
LATE_S = 1.0  # beyond what a busy machine does to a thread: this process itself stood still
AGAIN_FACTOR = 4  # it is said again when it has lasted so many times as long
HURRY_S = 1.0  # how long a second request to end waits for the loop
WHERE_MAX = 200
EXIT_CODE = exits.BLOCKED
OF_CODE = (
    "a blocking handler should be a plain def, and blocking code in an async one goes to asyncio.to_thread"
)
OF_THE_MACHINE = (
    "other threads and processes have the processors, so run less beside this worker, or fewer slots"
)
PATIENCE_S = 2.0  # for the database; what it does not answer, the sweeps of others settle


class ProcessEnd:
    """The end of a process whose event loop does not answer: what is safe is written from here, then it ends.

    Whoever waits for the loop waits for the handler that blocks it. So the thread that watches the loop says what
    became of each job, under its fence, retires the registration, and ends the process.
    """

    def __init__(
        self,
        engine: Engine,
        lease: WorkerLease,
        roster: Roster,
        acker: Acker,
        decider: Decider,
        keeper: Keeper,
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._roster = roster
        self._acker = acker
        self._decider = decider
        self._keeper = keeper

    def end(self, reason: str, late: Sequence[Attempt]) -> None:
        """Count those that ran out of time, write what had ended, release the rest uncounted, and exit."""
        error = LoopBlocked(
            f"this worker ends its process: {reason}",
            "nothing can interrupt code that blocks the event loop",
            "make the handler a plain def, or process=True; a supervisor starts the worker again",
        )
        log.critical("%s", error)
        self._lease.start_nothing()  # should the loop come back in this moment
        steps: tuple[Callable[[], None], ...] = (
            self._keeper.halt,
            lambda: self._write(self._outcomes(late)),
            self._keeper.stop,
            *(handler.flush for handler in logging.root.handlers),
            *(stream.flush for stream in (sys.stdout, sys.stderr) if stream is not None),
        )
        for step in steps:
            try:
                step()
            except BaseException as met:
                # The blocked handler may hold the very lock. What is missing the sweeps of others say.
                log.error("not all could be written at the end: %r", met)
        os._exit(EXIT_CODE)

    def _outcomes(self, late: Sequence[Attempt]) -> list[Pending]:
        known = {each.key: each for each in self._acker.unconfirmed()}
        for attempt in late:
            outcome = self._decider.decide(attempt, OutOfTime())
            if outcome is not None:
                known.setdefault(attempt.key, Pending(attempt, attempt.key, outcome, 0.0))
        for key, attempt in tuple(self._roster.held.items()):
            why: Outcome = Released("its worker ended: another job blocked the event loop")
            known.setdefault(key, Pending(attempt, attempt.key, why, 0.0))
        return list(known.values())

    def _write(self, outcomes: Iterable[Pending]) -> None:
        engine = self._engine.keeper(patience_s=PATIENCE_S)  # the loop's own connections are of no use here
        # Of a crash a sweep says the same.
        written = [each for each in outcomes if not isinstance(each.outcome, Crashed)]
        try:
            for kind, holder, batch in batches(written):
                engine.run(WRITINGS[kind].write(batch, holder))  # what it does not find is no longer ours
        finally:
            engine.close()


class LoopWatch:
    """Pings the loop. `block` is the present block, or the last one. `ending` is called in the thread, once, with the
    reason and those who ran out of time; without it the process is never ended.

    `kill_s` is what a handler gets beyond its time limit, and the loop after a first request to end.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_loop: OnLoop,
        held: Mapping[Key, Attempt],
        telemetry: Telemetry,
        block: Recent[Blocked],
        ending: ProcessEnd | None,
        *,
        kill_s: float,
    ) -> None:
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._processor = ProcessorWait(threading.get_native_id())
        self._on_loop = on_loop
        self._held = held
        self._telemetry = telemetry
        self._block = block
        self._ending = ending
        self._kill_s = kill_s
        self._stopped = threading.Event()
        self._service = Service(
            "fencerow-blocked", self._turn, rest=self._stopped.wait, over=self._processor.close
        )
        self._pinged_at: float | None = None
        self._waited_s: float | None = None  # for a processor, when it was pinged
        self._seen_since = time.monotonic()  # this thread has looked without a gap since then
        self._said_s = 0.0  # how long the present block had lasted when it was last said
        self._asked_at = math.inf  # when somebody asked the worker to end
        self._grace_s = kill_s  # what the loop has then to answer

    def start(self) -> None:
        self._service.need()

    def stop(self) -> None:
        """End the thread; the loop answers, or nobody needs it any more."""
        self._stopped.set()
        self._service.join(2 * LOOK_S)

    def leave_asked(self, *, hurry: bool) -> None:
        """The worker was asked to end: the loop has a while to hear of it, and less when somebody is in a hurry."""
        if hurry and self._grace_s > HURRY_S:
            self._asked_at, self._grace_s = time.monotonic(), HURRY_S
        else:
            self._asked_at = min(self._asked_at, time.monotonic())

    def silent_s(self) -> float:
        """How long the loop has not answered a ping."""
        pinged_at = self._pinged_at
        return 0.0 if pinged_at is None else time.monotonic() - pinged_at

    # --- in its thread ---------------------------------------------------------------------------------

    def _turn(self) -> bool:
        pause_s = IDLE_LOOK_S if self._pinged_at is None and not self._held else LOOK_S
        due = time.monotonic() + pause_s
        if self._stopped.wait(pause_s):
            return False
        now = time.monotonic()
        if now - due > LATE_S:
            self._seen_since = now  # what it did meanwhile, nobody can say: it may have been stopped
        if self._pinged_at is None:
            if waits_for_events(self._frame(), self._loop):
                return True  # it would answer at once: it is not woken for that
            self._pinged_at, self._waited_s = now, self._processor.seconds()
            try:
                self._loop.call_soon_threadsafe(self._answered)
            except RuntimeError:
                return False  # closed: the worker is over
            return True
        self._look(now, self._pinged_at)
        return True

    def _look(self, now: float, pinged_at: float) -> None:
        blocked_s = now - pinged_at
        if blocked_s < BLOCKED_S:
            return
        attempts = self._culprits()
        found = self._described(blocked_s, attempts)
        self._block.note(found)
        if blocked_s >= AGAIN_FACTOR * self._said_s:
            self._said_s = blocked_s
            self._say(found)
        self._decide(now, now - max(pinged_at, self._seen_since), attempts)

    def _decide(self, now: float, seen_s: float, attempts: tuple[Attempt, ...]) -> None:
        """End the process if it must; only by what this thread has seen without a gap."""
        late = tuple(each for each in attempts if now >= each.deadline + self._kill_s)
        if late and seen_s >= self._kill_s:
            spent_s = late[0].timeout_s or 0.0
            self._over(
                f"{_named(late)} ran past its {spent_s:g} s and keeps the event loop, so it cannot end", late
            )
        elif min(seen_s, now - self._asked_at) >= self._grace_s:
            self._over(f"it was asked to end, and {_named(attempts)} keeps the event loop", ())

    def _over(self, reason: str, late: tuple[Attempt, ...]) -> None:
        self._stopped.set()
        if self._ending is not None:
            self._ending.end(reason, late)

    def _culprits(self) -> tuple[Attempt, ...]:
        """Whose handler the loop is in: a step of its own, or of a task or callback that it has started."""
        if at_work := self._on_loop.attempts:
            return tuple(each for each in at_work if self._held.get(each.key) is each)
        context = context_in(self._frame(), self._loop)  # what a handler starts inherits its context
        known = None if context is None else context.get(running)
        found = None if known is None else self._held.get((known.job_id, known.attempt))
        return () if found is None else (found,)

    def _frame(self) -> FrameType | None:
        """Where the loop's thread stands now."""
        return sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage]

    def _described(self, blocked_s: float, attempts: tuple[Attempt, ...]) -> Blocked:
        where = _where(self._frame())
        if not attempts:
            starved = is_starved(self._waited_s, self._processor.seconds(), blocked_s)
            return Blocked(round(blocked_s, 1), where=where, is_starved=starved)
        first = attempts[0].claimed
        return Blocked(round(blocked_s, 1), first.id, first.name, where)

    def _say(self, blocked: Blocked) -> None:
        frame = self._frame()
        stack = "".join(traceback.format_stack(frame)).rstrip() if frame is not None else "?"
        self._telemetry.counters.add("loop_blocked")
        self._telemetry.emit(
            Fact.LOOP_BLOCKED,
            seconds=blocked.seconds,
            job_id=blocked.job_id,
            job=blocked.job,
            where=blocked.where,
        )
        log.warning(
            "the event loop has been blocked for %.1f s by %s: no other job goes on meanwhile; %s. It stands at:\n%s",
            blocked.seconds,
            blocked.by,
            OF_THE_MACHINE if blocked.is_starved else OF_CODE,
            stack,
        )

    # --- on the event loop -------------------------------------------------------------------------------

    def _answered(self) -> None:
        pinged_at, self._pinged_at, self._said_s = self._pinged_at, None, 0.0
        last = self._block.last
        if pinged_at is not None and last is not None and not last[0].is_over:
            said, _ = last
            seconds = round(max(said.seconds, time.monotonic() - pinged_at), 1)
            self._block.note(structs.replace(said, seconds=seconds, is_over=True))


def _named(attempts: tuple[Attempt, ...]) -> str:
    return str(attempts[0]) if attempts else "code of no known job"


def _where(frame: FrameType | None) -> str:
    """The innermost line, for an operator."""
    if frame is None:
        return ""
    code = frame.f_code
    return clean(f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}")[-WHERE_MAX:]
