"""Where attempts run: here beside others, in a child process, or here alone.

In a child process run the jobs declared with `process=True` and every suspect that a child can find. Any other suspect
runs here, alone if the others end soon: then a death is its own doing. Else it runs beside them: it must not wait for
ever, nor keep its neighbours from work.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fencerow.core.errors import NotImportable
from fencerow.core.model.handler import Handler
from fencerow.core.model.outcome import Released
from fencerow.core.store import store
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.brought import Apart
from fencerow.core.worker.calling import Calls
from fencerow.core.worker.deciding import Decider
from fencerow.core.worker.executor import Executor
from fencerow.db.engine import Engine

log = logging.getLogger("fencerow.worker")

TAKEN = "a suspect job has the worker for itself"
ALONE_WAIT_S = 5.0  # for the others to end, while nothing else is claimed or started
ALONE_AGAIN_S = 60.0  # after a wait that was in vain: until then nobody is kept waiting for another
LOOK_S = 0.02


class Dispatch:
    """Decides for each attempt where it runs, and runs it there. Used on the event loop only.

    Without `make_apart` no suspect runs in a child. `wake_claimers` is called when a suspect waited in vain for the
    others to end: the claimers, which have seen that nothing may be claimed, must hear that it may be again.
    """

    def __init__(
        self,
        engine: Engine,
        executor: Executor,
        calls: Calls,
        decider: Decider,
        make_apart: Callable[[], Apart] | None,
        wake_claimers: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._executor = executor
        self._calls = calls
        self._decider = decider
        self._make_apart = make_apart
        self._apart: Apart | None = None  # from the first time on that something may run there
        self._wake_claimers = wake_claimers
        self._found: dict[str, bool] = {}  # whether a child finds the jobs of a name
        self._beside = 0  # attempts that run beside others
        # This one has the process for itself, or waits for that: nothing is claimed, nothing starts.
        self.withheld_for: Attempt | None = None
        self._busy_until = 0.0  # the others did not end in time: nobody waits for them until then

    @property
    def hung_count(self) -> int:
        """Handlers that were given up and still run."""
        return self._executor.hung_count

    def stays_here(self, handler: Handler) -> bool:
        """Whether no child can run its suspects."""
        return not handler.process and self._apart_for(handler) is None

    def run(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> Coroutine[Any, Any, bool]:
        """Run attempts of one name. Returns whether the slot is still the caller's; else `slot_lost` was called."""
        if self.withheld_for is not None:
            return self._taken(attempts)
        self._executor.tell_started(attempts)
        first = attempts[0]
        if not first.claimed.suspect and not first.handler.process:
            return self._run_beside(attempts, slot_lost)
        return self._run_apart(first, slot_lost)

    async def _taken(self, attempts: Sequence[Attempt]) -> bool:
        for attempt in attempts:
            self._executor.report(attempt, Released(TAKEN))
        return True

    async def _run_apart(self, first: Attempt, slot_lost: Callable[[], None]) -> bool:
        """Run it in a child process, or else here as a suspect."""
        self._beside += 1
        try:
            if await self._in_child(first):
                return True
        finally:
            self._beside -= 1
        return await self._suspected_here(first, slot_lost)

    def abandon(self) -> None:
        """Nothing has run yet: let the idle threads go."""
        self._calls.close()

    async def close(self) -> None:
        """End the threads that are idle, and every child."""
        self._calls.close()
        if self._apart is not None:
            await self._apart.close()

    # --- here, beside others -----------------------------------------------------------------------------

    async def _run_beside(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> bool:
        is_here = True
        self._beside += 1

        def lost() -> None:
            nonlocal is_here
            is_here = False
            self._beside -= 1
            slot_lost()

        try:
            return await self._executor.run(attempts, lost)
        finally:
            if is_here:
                self._beside -= 1

    # --- in a child --------------------------------------------------------------------------------------

    async def _in_child(self, attempt: Attempt) -> bool:
        """Run it in a child process; false if it must run elsewhere."""
        try:
            if (apart := self._apart_for(attempt.handler)) is not None:
                await apart.run(attempt)
                return True
        except NotImportable as error:
            log.error("%s", error)
            self._found[attempt.handler.name] = False
            if attempt.handler.process:
                self._executor.report(attempt, self._decider.decide(attempt, error))
                return True
        return False

    def _apart_for(self, handler: Handler) -> Apart | None:
        """What runs its jobs in child processes; None where nothing can."""
        if handler.process is False or self._make_apart is None:
            return None
        if self._apart is None:
            self._apart = self._make_apart()
        if handler.name not in self._found:
            self._found[handler.name] = self._apart.finds(handler)
        return self._apart if self._found[handler.name] else None

    # --- here, alone -------------------------------------------------------------------------------------

    async def _suspected_here(self, attempt: Attempt, slot_lost: Callable[[], None]) -> bool:
        """Run a suspect with nothing beside it, which is noted; if that cannot be had soon, beside the others."""
        if await self._is_alone_soon(attempt):
            return await self._noted_alone(attempt, slot_lost)
        if self.withheld_for is not None:
            return await self._taken([attempt])
        return await self._run_beside([attempt], slot_lost)

    async def _is_alone_soon(self, attempt: Attempt) -> bool:
        """Whether it has the worker for itself now; not if others still run after a while, or may still run."""
        if self._executor.hung_count:
            return False  # a handler that was given up may still do anything
        if self._beside and time.monotonic() < self._busy_until:
            return False
        if self.withheld_for is not None:  # somebody else was first
            self._busy_until = time.monotonic() + ALONE_AGAIN_S
            return False
        self.withheld_for = attempt
        deadline = time.monotonic() + ALONE_WAIT_S
        try:
            while self._beside and not attempt.asked_to_end and time.monotonic() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
        except BaseException:
            self.withheld_for = None
            raise
        if self._beside:
            self.withheld_for = None
            self._busy_until = time.monotonic() + ALONE_AGAIN_S
            self._wake_claimers()
            return False
        return True

    async def _noted_alone(self, attempt: Attempt, slot_lost: Callable[[], None]) -> bool:
        def lost() -> None:
            self._let_go(attempt)
            slot_lost()

        try:
            claimed = attempt.claimed
            noted = await self._engine.arun(
                store.note_alone(claimed.id, holder=attempt.holder, attempt=claimed.attempt)
            )
            if noted:
                return await self._executor.run([attempt], lost)
            self._executor.report(attempt, None)
        except Exception as error:
            self._executor.report(attempt, self._decider.decide_fault(attempt, error))
        finally:
            self._let_go(attempt)
        return True

    def _let_go(self, attempt: Attempt) -> None:
        """It does not need the worker for itself any more: another one may have it by now."""
        if self.withheld_for is attempt:
            self.withheld_for = None
