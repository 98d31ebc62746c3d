"""How a mutex is taken: tried, waited for, and, in a job, put off to another time."""

from __future__ import annotations

import asyncio
import os
import platform
import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NoReturn

import fencerow.guards.mutex.mutexes as mutexes
from fencerow.core.model.control import Snooze
from fencerow.core.store.running import Running
from fencerow.db.engine import Engine
from fencerow.db.run import Operation, Pause
from fencerow.db.steady import steady
from fencerow.guards.mutex.errors import MutexBusy
from fencerow.guards.mutex.mutexes import MutexRecord, MutexTaker
from fencerow.guards.mutex.terms import Terms

DELAYS_S = (2.0, 4.0, 8.0, 16.0, 30.0)  # of a job that puts itself back; the last one stays
PAUSE_MIN_S = 0.01  # between two looks
PAUSE_MAX_S = 0.1
GROWTH = 1.5
# At one that seems free: it is just changing hands, or a guarded write is under way.
TRIES_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class MutexTake:
    """The token of a take, and the `steady()` time before it was sent."""

    token: int
    sent: float


Taking = Generator[Operation[Any] | Pause, Any, MutexTake]


def taking(terms: Terms, holder: str, attempt: Running | None) -> Taking:
    """Take the mutex or say why not, step by step; whoever runs it does so sync or async.

    Between two tries nothing is locked and no transaction is open. Waiters do not queue: whoever looks first after
    a release gets it.

    Raises:
        MutexBusy: somebody else held it until the wait was over; in a job with `defers` once too often.
        Snooze: with `defers`, in a job: its slot is given back for a while.
        LeaseLost: the attempt no longer holds its job.
    """
    taker = _taker(terms, holder, attempt)
    until = steady() + terms.wait_s
    pause_s, tries = PAUSE_MIN_S, 0
    while True:
        sent = steady()
        token: int | None = yield _try(taker, attempt, terms)
        found: MutexRecord | None = None
        if token is None:
            found = yield mutexes.look(terms.key)
            if found is None and attempt is None:
                token = yield mutexes.make(taker)
        if token is not None:
            return MutexTake(token, sent)
        tries += 1
        # Waiting is looking: nothing is written, and no row is locked, before it seems to be free.
        while tries >= TRIES_AT_ONCE or not _seems_free(found, attempt):
            left_s = until - steady()
            if left_s <= 0:
                yield from _refuse(terms, attempt, found)
            yield Pause(min(left_s, random.uniform(0.5, 1.0) * pause_s))  # noqa: S311 (jitter, not a secret)
            pause_s = min(PAUSE_MAX_S, pause_s * GROWTH)
            found = yield mutexes.look(terms.key)
            tries = min(tries, TRIES_AT_ONCE - 1)


def _seems_free(found: MutexRecord | None, attempt: Running | None) -> bool:
    """Whether a try makes sense; the take itself decides."""
    if found is None or not found.is_held or found.is_stale:
        return True
    return attempt is not None and found.job_id == attempt.job_id and (found.attempt or 0) < attempt.attempt


def _refuse(
    terms: Terms, attempt: Running | None, found: MutexRecord | None
) -> Generator[Operation[Any], Any, NoReturn]:
    """The wait was in vain."""
    if terms.defers and attempt is not None:
        yield from _put_off(terms, attempt, found)
    raise busy(terms.key, found)


class TakeInFlight:
    """What a take has asked of the database, for whoever breaks it off: whether more may come of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._has_server = engine.traits.has_server  # it may end an operation whose connection was lost
        self.may_come = False  # an operation was sent, and it is not known to be over

    def run(self, operation: Operation[Any]) -> Any:
        """Run an operation in this thread."""
        self.may_come = True
        try:
            answer = self._engine.run(operation)
        except BaseException:
            self.may_come = self._has_server
            raise
        self.may_come = False
        return answer

    async def arun(self, operation: Operation[Any]) -> Any:
        """The same in this event loop. Whoever is cancelled meanwhile does not cancel it, and its end is noted."""
        self.may_come = True
        running = asyncio.ensure_future(self._engine.arun(operation))
        running.add_done_callback(self._over)
        return await asyncio.shield(running)

    def _over(self, asked: asyncio.Future[Any]) -> None:
        # Of what was cancelled a thread may still be at work.
        self.may_come = asked.cancelled() or (self._has_server and asked.exception() is not None)


def _taker(terms: Terms, holder: str, attempt: Running | None) -> MutexTaker:
    return MutexTaker(
        terms.key,
        holder,
        terms.stale_s,
        platform.node(),
        os.getpid(),
        terms.purpose,
        attempt.job_id if attempt else None,
        attempt.attempt if attempt else None,
        attempt.name if attempt else None,
    )


def _try(taker: MutexTaker, attempt: Running | None, terms: Terms) -> Operation[int | None]:
    if attempt is None:
        return mutexes.take(taker)
    return mutexes.take_in_job(taker, attempt.still_held, defers=terms.defers)


def _put_off(
    terms: Terms, attempt: Running, found: MutexRecord | None
) -> Generator[Operation[Any], Any, None]:
    """Give the slot back; or let the attempt fail, when that was done so often before."""
    deferral: int | None = yield mutexes.defer(
        terms.key, attempt.job_id, attempt.attempt, attempt.still_held, most=terms.deferrals_max
    )
    if deferral is None:
        return
    delay_s = delay_of(deferral)
    if terms.deferral_jitter:
        delay_s = delay_s / 2 + random.uniform(0, delay_s / 2)  # noqa: S311 (jitter, not a secret)
    raise Snooze(
        delay_s,
        f"the mutex {terms.key!r} is busy ({told(found)}); put back {deferral} of {terms.deferrals_max} times",
    )


def delay_of(deferral: int) -> float:
    """For how many seconds a job puts itself back the first time, the second, and so on."""
    return DELAYS_S[min(deferral, len(DELAYS_S)) - 1]


def busy(key: str, found: MutexRecord | None) -> MutexBusy:
    """The error that tells who holds it."""
    held = found if found is not None and found.is_held else None
    return MutexBusy(
        f"the mutex {key!r} is busy",
        told(found),
        "try again later, wait for longer, or let the job snooze with busy='snooze'",
        key=key,
        host=held.host if held else None,
        job_id=held.job_id if held else None,
        job_name=held.job_name if held else None,
        purpose=held.purpose if held else None,
        since=held.since if held else None,
        until=held.until if held else None,
    )


def told(found: MutexRecord | None) -> str:
    """Who holds a mutex, in words."""
    if found is None or not found.is_held:
        return "it is just changing hands, or a guarded transaction of its last holder is still open"
    job = f"job {found.job_name} {found.job_id} in " if found.job_id else ""
    purpose = f" for {found.purpose!r}" if found.purpose else ""
    return (
        f"held by {job}process {found.pid} on {found.host}{purpose}, since {found.since:%Y-%m-%d %H:%M:%S} UTC, "
        f"until {found.until:%H:%M:%S} unless it is renewed"
    )
