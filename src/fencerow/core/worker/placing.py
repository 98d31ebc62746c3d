"""Where attempts run: here beside others, in a child process, or here alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from fencerow.core.db.engine import Engine
from fencerow.core.errors import NotImportable
from fencerow.core.model.outcome import Released
from fencerow.core.store import store
from fencerow.core.worker.alone import Alone, Place
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.brought import Apart, Here
from fencerow.core.worker.executor import Report
from fencerow.core.worker.handler import Handler
from fencerow.core.worker.judging import Judge

log = logging.getLogger("fencerow.worker")

TAKEN = "a suspect job has the worker for itself"
ALONE_WAIT_S = 5.0  # for the others to end, while nothing else is claimed or begun
ALONE_AGAIN_S = 60.0  # after a wait that was in vain: until then nobody is kept waiting for another


class Placing:
    """Decides for each attempt, and runs it there.

    In a child process run the jobs declared with `process=True` and every suspect that a child can find; any other
    suspect runs here, alone if the others end soon, else beside them: it must not wait for ever, nor keep its
    neighbours from work. Without `apart` no suspect runs in a child.
    """

    def __init__(
        self,
        engine: Engine,
        here: Here,
        apart: Apart | None,
        alone: Alone,
        judge: Judge,
        report: Report,
    ) -> None:
        self._engine = engine
        self._here = here
        self._executor = here.executor
        self._apart = apart
        self._alone = alone
        self._judge = judge
        self._report = report
        self._found: dict[str, bool] = {}
        self._busy_until = 0.0  # the others did not end in time: nobody waits for them until then

    def stays_here(self, handler: Handler) -> bool:
        """Whether no child can run its suspects."""
        if handler.process:
            return False
        return not self._found_apart(handler)

    async def run(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> bool:
        """Run attempts of one name. Returns whether the slot is still the caller's; else `slot_lost` was called."""
        if self._alone.is_taken:
            for attempt in attempts:
                self._report(attempt, Released(TAKEN))
            return True
        first = attempts[0]
        if not first.claimed.suspect and not first.handler.process:
            return await self._beside(attempts, slot_lost)
        place = self._alone.enter()
        try:
            if await self._in_child(first):
                return True
        finally:
            place.leave()
        return await self._suspected_here(first, slot_lost)

    async def _beside(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> bool:
        """Run here, counted among those that run."""
        place = self._alone.enter()

        def lost() -> None:
            place.leave()
            slot_lost()

        try:
            return await self._here.run(attempts, lost)
        finally:
            place.leave()

    async def _in_child(self, attempt: Attempt) -> bool:
        """Run it in a child process; false if it must run elsewhere."""
        try:
            if self._apart is not None and self._found_apart(attempt.handler):
                await self._apart.run(attempt)
                return True
        except NotImportable as error:
            log.error("%s", error)
            self._found[attempt.handler.name] = False
            if attempt.handler.process:
                self._report(attempt, self._judge.judged(attempt, error))
                return True
        return False

    async def _suspected_here(self, attempt: Attempt, slot_lost: Callable[[], None]) -> bool:
        """Run a suspect with nothing beside it, which is noted; if that cannot be had soon, beside the others."""
        place = await self._alone_soon(attempt)
        if place is not None:
            return await self._noted_alone(attempt, place, slot_lost)
        if self._alone.is_taken:
            self._report(attempt, Released(TAKEN))
            return True
        return await self._beside([attempt], slot_lost)

    async def _alone_soon(self, attempt: Attempt) -> Place | None:
        """The worker for itself; None if others still run after a while, or may still run."""
        if self._executor.hung_count:
            return None  # a handler that was given up may still do anything
        if self._alone.is_busy and time.monotonic() < self._busy_until:
            return None
        place = await self._alone.take(ALONE_WAIT_S, lambda: attempt.asked_to_end)
        if place is None:
            self._busy_until = time.monotonic() + ALONE_AGAIN_S
        return place

    async def _noted_alone(self, attempt: Attempt, place: Place, slot_lost: Callable[[], None]) -> bool:
        def lost() -> None:
            place.leave()
            slot_lost()

        try:
            claimed = attempt.claimed
            noted = await self._engine.arun(
                store.note_alone(claimed.id, holder=attempt.holder, attempt=claimed.attempt)
            )
            if noted:
                return await self._here.run([attempt], lost)
            self._report(attempt, None)
        except Exception as error:
            self._report(attempt, self._executor.unrun(attempt, error))
        finally:
            place.leave()
        return True

    def _found_apart(self, handler: Handler) -> bool:
        """Whether a child process can run its jobs."""
        if handler.process is False or self._apart is None:
            return False
        if handler.name not in self._found:
            self._found[handler.name] = self._apart.finds(handler)
        return self._found[handler.name]
