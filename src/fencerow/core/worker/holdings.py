"""What the keeper read, compared with what this worker knows: cancels, strangers, lost registrations.

A stranger is a job that is ours in the database but unknown here: the reply to its claim was lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fencerow.core.db.engine import Engine
from fencerow.core.db.trouble import is_trouble
from fencerow.core.store import store
from fencerow.core.store.finish import Requeued
from fencerow.core.store.workers import Holding
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.begun import Begun
from fencerow.core.worker.claims import Claims

log = logging.getLogger("fencerow.worker")

LOST_REPLY = '{"reason":"lost reply"}'


class Holdings:
    """What the keeper tells in its own thread, acted upon on the event loop."""

    def __init__(
        self,
        engine: Engine,
        attempts: Mapping[tuple[str, int], Attempt],
        claims: Claims,
        begun: Begun,
        telemetry: Telemetry,
        *,
        renew_s: float,
        cancel_raise_s: float,
        soon: Callable[[Callable[[], None]], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        on_queued: Callable[[list[Requeued]], None],
        on_ended: Callable[[list[str]], None],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        self._engine = engine
        self._attempts = attempts
        self._claims = claims
        self._begun = begun
        self._telemetry = telemetry
        self._renew_s = renew_s
        self._cancel_raise_s = cancel_raise_s
        self._soon = soon
        self._spawn = spawn
        self._on_queued = on_queued
        self._on_ended = on_ended
        self._on_failed = on_failed
        self._strangers: dict[tuple[str, int], float] = {}  # and since when

    # --- in the keeper's thread --------------------------------------------------------------------------

    def on_holdings(self, holder: str, holdings: list[Holding]) -> None:
        self._soon(lambda: self._compare(holder, holdings))

    def on_death(self, holder: str) -> None:
        self._soon(lambda: self._lose(holder))

    def on_keeper_failed(self, error: BaseException) -> None:
        self._soon(lambda: self._on_failed(error))

    # --- on the event loop -------------------------------------------------------------------------------

    def _compare(self, holder: str, holdings: list[Holding]) -> None:
        """Pass cancels on, and let go of jobs that a lost reply left to us without our knowing."""
        now = time.monotonic()
        unknown: dict[tuple[str, int], float] = {}
        asked: set[str] = set()
        for held in holdings:
            attempt = self._attempts.get((held.id, held.attempt))
            if attempt is None:
                unknown[held.id, held.attempt] = self._strangers.get((held.id, held.attempt), now)
                asked |= {held.id} if held.cancel_requested else set()
            elif held.cancel_requested:
                attempt.end(Interrupt.CANCEL, self._cancel_raise_s)
        self._strangers = unknown
        # What is seen for the first time may be the answer to a claim that is under way.
        self._begun.compared(any_unknown=any(since < now for since in unknown.values()))
        for (job_id, number), since in tuple(unknown.items()):
            # A claim sent before the job was seen may still bring it.
            if now - since < self._renew_s or self._claims.any_sent_by(since):
                continue
            del self._strangers[job_id, number]
            log.warning(
                "job %s attempt %d is ours but unknown here (a lost reply); letting it go", job_id, number
            )
            self._telemetry.counters.add("strangers_released")
            let_go = self._stop if job_id in asked else self._release
            self._spawn(self._letting_go(let_go(holder, job_id, number), job_id))

    async def _release(self, holder: str, job_id: str, number: int) -> None:
        released = store.Requeue(id=job_id, attempt=number, kind="released", detail=LOST_REPLY)
        self._on_queued(await self._engine.arun(store.requeue([released], holder=holder)))

    async def _stop(self, holder: str, job_id: str, number: int) -> None:
        """A job of which a cancel was asked is never queued again."""
        stopped = store.Stop(job_id, number, LOST_REPLY)
        moved = await self._engine.arun(store.stop([stopped], holder=holder))
        self._on_ended([job.id for job in moved if job.awaited])

    async def _letting_go(self, work: Coroutine[Any, Any, None], job_id: str) -> None:
        try:
            await work
        except Exception as error:
            if not is_trouble(error):
                raise
            log.warning("could not let go of job %s: %s; the next renewal tries again", job_id, error)

    def _lose(self, holder: str) -> None:
        """Declared dead: everything held under that registration belongs to others now."""
        for attempt in list(self._attempts.values()):
            if attempt.holder == holder:
                attempt.end(Interrupt.LOST)
