"""One attempt as a short pipeline: may it start, decode, call, report.

A slot is free as soon as it has handed the outcome to the acker; it never
waits for the database on the happy path.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from fencerow.core.db.engine import Engine
from fencerow.core.db.trouble import is_shortage, is_trouble
from fencerow.core.errors import ArgumentsTooNew, CancelRequested, LeaseLost
from fencerow.core.model.codec import args_version_of
from fencerow.core.model.outcome import Failed, Outcome, Released, Stopped
from fencerow.core.model.retry import describe
from fencerow.core.store import store
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.attempt import Attempt, Interrupt, lease_lost
from fencerow.core.worker.calling import Calls
from fencerow.core.worker.judging import Judge, Verdict
from fencerow.core.worker.middleware import Middleware
from fencerow.core.worker.newer import given_back
from fencerow.core.worker.onloop import OnLoop

log = logging.getLogger("fencerow.worker")

Report = Callable[[Attempt, Verdict], None]


class HeldLease(Protocol):
    """The lease under which jobs are run."""

    @property
    def holder(self) -> str | None: ...

    def holds(self) -> bool:
        """Whether new work may be started."""
        ...


class Executor:
    """Runs attempts in slots, and reports what becomes of each."""

    def __init__(
        self,
        engine: Engine,
        lease: HeldLease,
        report: Report,
        telemetry: Telemetry,
        middleware: Middleware,
        *,
        judge: Judge,
        kill_s: float,
        unknown_max_s: float,
        held_max_s: float | None = None,
        on_loop: OnLoop | None = None,
    ) -> None:
        self.engine = engine
        self._lease = lease
        self.report = report
        self._telemetry = telemetry
        self.judge = judge
        self.middleware = middleware
        self.kill_s = kill_s
        self.unknown_max_s = unknown_max_s
        self.calls = Calls(
            engine,
            judge,
            telemetry,
            middleware.run,
            kill_s=kill_s,
            held_max_s=held_max_s,
            on_loop=on_loop,
        )
        self.hung_count = 0  # handlers that were given up and have not ended since

    def close(self) -> None:
        self.calls.close()

    async def run(self, attempt: Attempt, slot_lost: Callable[[], None]) -> None:
        """Run one attempt to its outcome. `slot_lost` is called when the slot's handler had to be given up."""
        verdict: Verdict
        try:
            verdict = await self._outcome(attempt, slot_lost)
        except LeaseLost:
            verdict = None
        except Exception as error:
            verdict = self.unrun(attempt, error)
        if attempt.abandoned:
            self.hung_count -= 1  # it has ended after all
            return  # it was reported when it was given up
        attempt.finish()
        self.report(attempt, verdict)

    async def prepared(self, attempt: Attempt) -> Outcome | bytes:
        """The arguments of an attempt that may start, or what becomes of one that may not.

        Raises:
            LeaseLost: the registration under which it was claimed is over.
        """
        at_hand = self._at_hand(attempt)
        if at_hand is not None:
            return at_hand
        text = await self._fetched_args(attempt)
        return self.refused_start(attempt) or text  # a good deal may have happened while they came

    def refused_start(self, attempt: Attempt) -> Outcome | None:
        """Nothing is started past the lease's deadline, and nothing that was asked to end or withdrawn.

        Raises:
            LeaseLost: the registration under which it was claimed is over, or others may have taken it back.
        """
        ours = self._lease.holder == attempt.holder and attempt.interrupt is not Interrupt.LOST
        if ours and attempt.interrupt is None and self._lease.holds():
            if attempt.starts():
                return None
            ours = False
        if not ours:
            raise lease_lost(attempt.claimed.id, attempt.claimed.attempt)
        if attempt.interrupt is Interrupt.CANCEL:
            return Stopped("cancelled before it started")
        if attempt.interrupt is not None:
            return Released(f"asked to end before it started ({attempt.interrupt})")
        return Released("the lease was not renewed in time")

    def unrun(self, attempt: Attempt, error: Exception) -> Outcome:
        """The job must not hang on a fault of ours, nor run again and again for nothing because of it."""
        if not attempt.started and (is_trouble(error) or is_shortage(error)):
            log.warning("job %s was not started: %s", attempt.claimed.id, error)
            return Released(f"{type(error).__name__}: {error}"[:500])
        log.error("job %s met a fault of the worker", attempt.claimed.id, exc_info=error)
        self._telemetry.counters.add("worker_faults")
        return Failed(describe(error, "worker_fault"))

    async def _outcome(self, attempt: Attempt, slot_lost: Callable[[], None]) -> Verdict:
        text = self._at_hand(attempt) or await self.prepared(attempt)
        if not isinstance(text, bytes):
            return text
        try:
            args, kwargs = self.decoded(attempt, text)
        except ArgumentsTooNew as error:
            return await given_back(self.engine, attempt.claimed, error, self.unknown_max_s)
        except Exception as error:
            return self.judge.judged(attempt, error)
        return await self.calls.call(attempt, args, kwargs, partial(self._give_up, attempt, slot_lost))

    def _at_hand(self, attempt: Attempt) -> Outcome | bytes | None:
        """What `prepared` says if it need not ask the database; None if the arguments did not come with the claim."""
        return self.refused_start(attempt) or attempt.claimed.inline_args

    def decoded(self, attempt: Attempt, text: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What its handler takes."""
        version = args_version_of(bytes(attempt.claimed.options))
        return attempt.handler.arguments.decode(text, version)

    async def _fetched_args(self, attempt: Attempt) -> bytes:
        claimed = attempt.claimed
        text = await self.engine.arun(
            store.fetch_args(claimed.id, holder=attempt.holder, attempt=claimed.attempt)
        )
        if text is None:
            raise lease_lost(claimed.id, claimed.attempt)
        return text.encode()

    def _give_up(self, attempt: Attempt, slot_lost: Callable[[], None]) -> None:
        """Go on without a handler that ignores its end. What it still does, the fence refuses."""
        self.count_hung()
        log.error(
            "job %s (%s) attempt %d did not end when asked (%s) and was given up; it may still be running here",
            attempt.claimed.id,
            attempt.claimed.name,
            attempt.claimed.attempt,
            attempt.interrupt,
        )
        error = CancelRequested("the handler ignored its end and was given up")
        self.report(attempt, self.judge.judged(attempt, error))
        slot_lost()

    def count_hung(self) -> None:
        """One more handler was given up, and may still run."""
        self.hung_count += 1
        self._telemetry.counters.add("handlers_given_up")
