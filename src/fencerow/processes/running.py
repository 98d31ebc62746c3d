"""An attempt in a child process: from its arguments to what its answer, or its death, makes of it."""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial

import msgspec

from fencerow.core.config import CoreConfig
from fencerow.core.errors import Busy, CancelRequested, LeaseLost, NotImportable
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.handler import Handler
from fencerow.core.model.outcome import Crashed, Outcome, Released
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.calling import Calls
from fencerow.core.worker.deciding import Decider, Decision, rule_of, timeout_error
from fencerow.core.worker.executor import Executor
from fencerow.processes.child import Child, Said
from fencerow.processes.children import Children
from fencerow.processes.origin import HandlerOrigin, origin_of
from fencerow.processes.wire import Missing, OutOfMemory, RunAttempt, decision_of

log = logging.getLogger("fencerow.worker")

NULL = msgspec.Raw(b"null")
NOT_STARTED_S = 5.0  # the pause after a child that could not be started


class ChildRuns:
    """Runs attempts in child processes, and reports what becomes of each."""

    def __init__(self, executor: Executor, calls: Calls, decider: Decider, config: CoreConfig) -> None:
        self._executor = executor
        self._calls = calls
        self._decider = decider
        self._children = Children(config, decider.held_max_s)
        self._origins: dict[str, HandlerOrigin] = {}

    def finds(self, handler: Handler) -> bool:
        """Whether a fresh interpreter would find what it is to run."""
        try:
            self._origins[handler.name] = origin_of(handler)
        except NotImportable as error:
            log.info("a suspect %s runs in its worker: %s", handler.name, error.what)
            return False
        return True

    async def close(self) -> None:
        """End every child, and wait until nothing is left."""
        await self._children.close()

    async def run(self, attempt: Attempt) -> None:
        """Run one attempt to its outcome.

        Raises:
            NotImportable: the child cannot find the job. Nothing was run, and nothing is reported.
        """
        decision: Decision
        try:
            decision = await self._outcome(attempt, self._origins[attempt.handler.name])
        except LeaseLost:
            decision = None
        except NotImportable:
            attempt.finish()
            raise
        except Exception as error:
            decision = self._decider.decide_fault(attempt, error)
        attempt.finish()
        self._executor.report(attempt, decision)

    async def _outcome(self, attempt: Attempt, origin: HandlerOrigin) -> Decision:
        text = await self._executor.prepared(attempt)
        if not isinstance(text, bytes):
            return text
        try:
            child = await self._children.lend(attempt.handler.memory_bytes_max, lambda: attempt.asked_to_end)
        except Busy as error:
            log.error("job %s was not started: %s", attempt.claimed.id, error)
            return Released(error.what, NOT_STARTED_S)
        refused = self._executor.refused_start(attempt)  # a good deal may have happened meanwhile
        if child is None or refused is not None:
            if child is not None:
                self._children.give_back(child)
            return refused
        claimed = msgspec.structs.replace(attempt.claimed, args=NULL)
        return await self._ran(attempt, child, RunAttempt(origin, claimed, attempt.holder, text.decode()))

    async def _ran(self, attempt: Attempt, child: Child, run: RunAttempt) -> Decision:
        running = child.run(run, attempt.end)
        try:
            said, error = await self._calls.interruptible(attempt, running, child.kill, child.end)
        except asyncio.CancelledError:
            child.kill()  # the slot itself is being ended
            raise
        if error is not None:
            raise error
        if isinstance(said, Missing):
            self._children.give_back(child)
            raise NotImportable(said.what, said.why, said.fix)
        if said is None or isinstance(said, OutOfMemory):
            await asyncio.shield(child.gone)
            return await self._decider.look_up(attempt, partial(self._after_death, attempt, child, said))
        self._children.give_back(child)
        decision = decision_of(said)
        if isinstance(decision, Released) and attempt.interrupt is Interrupt.TIMEOUT:
            return self._decider.decide(attempt, timeout_error(attempt))  # over before the handler began
        return decision

    def _after_death(self, attempt: Attempt, child: Child, said: Said | None) -> Outcome | None:
        """Killed because it ignored its end, or dead of its own doing, which counts a crash."""
        if attempt.interrupt is not None:
            error = CancelRequested(
                f"the handler ignored its end ({attempt.interrupt}) and its process was killed"
            )
            return self._decider.decide(attempt, error, still_ours=True)
        attempt.crashed = True
        reason = child.last_words()
        if isinstance(said, OutOfMemory):
            reason = f"its child process reached its memory limit of {child.memory_bytes_max} bytes"
        backoff = rule_of(attempt).backoff
        own = backoff if isinstance(backoff, Backoff) else Backoff()
        return Crashed(own.delay_s(attempt.claimed.crashes + 1, random.random), reason)
