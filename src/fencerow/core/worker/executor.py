"""One attempt as a short pipeline: may it start, decode, call, report.

A slot is free as soon as it has handed the outcome to the acker; it never
waits for the database on the happy path.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from fencerow.core.errors import (
    ArgumentsTooNew,
    CancelRequested,
    LeaseLost,
    PayloadAltered,
    PayloadMissing,
    SealKeyUnknown,
    StoreUnavailable,
)
from fencerow.core.model.codec import args_version_of, inline_args
from fencerow.core.model.outcome import Crashed, Failed, Outcome, Released, Retried, Stopped, Succeeded
from fencerow.core.store import store
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Attempt, Interrupt, facts, lease_lost
from fencerow.core.worker.calling import Calls
from fencerow.core.worker.deciding import Committed, Decider, Decision
from fencerow.core.worker.lines import JobLines
from fencerow.db.engine import Engine

log = logging.getLogger("fencerow.worker")

Report = Callable[[Attempt, Decision], None]


class HeldLease(Protocol):
    """The lease under which jobs are run."""

    @property
    def holder(self) -> str | None: ...

    def holds(self) -> bool:
        """Whether new work may be started."""
        ...


class RunsTogether(Protocol):
    """Runs attempts of one name in one call of their handler."""

    async def run(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> bool:
        """Returns whether the slot is still the caller's; else `slot_lost` was called."""
        ...


class Executor:
    """Runs attempts in this process, and reports what becomes of each: one by itself, or several in one call.

    `together` makes what runs several; None where no wing brings it. `held` says of a job with headers whether it goes
    back to its queue for a while instead; None where nothing may.
    """

    def __init__(
        self,
        engine: Engine,
        lease: HeldLease,
        report: Report,
        telemetry: Telemetry,
        calls: Calls,
        decider: Decider,
        together: Callable[[Executor, Calls, Decider], RunsTogether] | None,
        lines: JobLines,
        held: Callable[[Mapping[str, str]], Released | None] | None = None,
    ) -> None:
        self.report = report
        self.hung_count = 0  # handlers that were given up and have not ended since
        self._engine = engine
        self._lease = lease
        self._telemetry = telemetry
        self._calls = calls
        self._decider = decider
        self._lines = lines
        self._held = held
        self._make_together = together
        self._together: RunsTogether | None = None  # from the first time on that several run in one call

    async def run(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> bool:
        """Run attempts of one name to their outcomes. Returns whether the slot is still the caller's.

        It is not when the handler had to be given up; `slot_lost` was called then.
        """
        attempt = attempts[0]
        if attempt.handler.batch_max is not None:
            return await self._in_one_call().run(attempts, slot_lost)
        given = self._at_hand(attempt) or await self.start(attempt)
        if given is None:
            return True
        try:
            decision = await self._calls.call(attempt, *given, partial(self._give_up, attempt, slot_lost))
        except Exception as error:
            attempt.finish()
            lost = isinstance(error, LeaseLost)
            decision = None if lost else self._decider.decide_fault(attempt, error)
        if attempt.abandoned:
            self.uncount_hung()
            return False  # it was reported when it was given up
        self.report(attempt, decision)
        return True

    def _in_one_call(self) -> RunsTogether:
        if self._together is None:
            assert self._make_together is not None, "what declares such a handler brings how it is run"
            self._together = self._make_together(self, self._calls, self._decider)
        return self._together

    def _at_hand(self, attempt: Attempt) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments of an attempt that starts now, as nearly every one does: they came with the claim, and can be
        read at once. None: `start` says what becomes of it, and meets again whatever was met here."""
        handler, claimed = attempt.handler, attempt.claimed
        if handler.packing.waits:
            return None
        try:
            text = self.refused_start(attempt) or inline_args(claimed.args)
            if not isinstance(text, bytes):
                return None
            given = handler.called_with(claimed.id, text, args_version_of(bytes(claimed.options)))
        except Exception:
            return None
        self._lines.started(attempt)
        return given

    async def start(self, attempt: Attempt) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments of an attempt that starts now; None if it may not, which is reported then."""
        decision: Decision
        try:
            # Nearly always they came with the claim: then nothing is waited for.
            text = (
                self.refused_start(attempt)
                or inline_args(attempt.claimed.args)
                or await self.prepared(attempt)
            )
            if isinstance(text, bytes):
                try:
                    version = args_version_of(bytes(attempt.claimed.options))
                    if not attempt.handler.packing.waits:
                        given = attempt.handler.called_with(attempt.claimed.id, text, version)
                    elif isinstance(found := await self._read(attempt, text, version), tuple):
                        given = found
                    else:
                        attempt.finish()
                        self.report(attempt, found)
                        return None
                    self._lines.started(attempt)
                    return given
                except (ArgumentsTooNew, SealKeyUnknown) as error:
                    decision = await self._decider.decide_unreadable(attempt.claimed, error)
                except StoreUnavailable as error:
                    decision = await self._decider.decide_away(attempt.claimed, error)
                except (PayloadAltered, PayloadMissing) as error:
                    decision = self._decider.decide_refused(attempt, error)
                except Exception as error:
                    decision = self._decider.decide(attempt, error)
            else:
                decision = text
        except LeaseLost:
            decision = None
        except Exception as error:
            decision = self._decider.decide_fault(attempt, error)
        attempt.finish()
        self.report(attempt, decision)
        return None

    async def prepared(self, attempt: Attempt) -> Outcome | bytes:
        """The arguments as text of an attempt that may start, or what becomes of one that may not.

        Raises:
            LeaseLost: the registration under which it was claimed is over.
        """
        at_hand = self.refused_start(attempt) or inline_args(attempt.claimed.args)
        if at_hand is not None:
            return at_hand
        text = await self._fetched_args(attempt)
        return self.refused_start(attempt) or text  # a good deal may have happened while they came

    def refused_start(self, attempt: Attempt) -> Outcome | None:
        """Nothing is started past the lease's deadline, and nothing that was asked to end, held or withdrawn.

        Raises:
            LeaseLost: the registration under which it was claimed is over, or others may have taken it back.
        """
        ours = self._lease.holder == attempt.holder and attempt.interrupt is not Interrupt.LOST
        if ours and attempt.interrupt is None and self._lease.holds():
            headers = attempt.claimed.headers
            if self._held is not None and headers and (held := self._held(headers)):
                return held
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

    def tell_started(self, attempts: Sequence[Attempt]) -> None:
        """A slot takes these: tell who listens how long each was due."""
        if not self._telemetry.is_heard:
            return
        now = time.monotonic()
        for each in attempts:
            waited_s = None if each.due_s is None else each.due_s + max(0.0, now - each.taken)
            self._telemetry.emit(Fact.STARTED, **facts(each), waited_s=waited_s)

    def count_hung(self) -> None:
        """One more handler was given up, and may still run."""
        self.hung_count += 1
        self._telemetry.counters.add("handlers_given_up")

    def uncount_hung(self) -> None:
        """One that was given up has ended after all."""
        self.hung_count -= 1

    async def _read(
        self, attempt: Attempt, text: bytes, version: int
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | Outcome:
        """The arguments of an attempt that may lie in a store, or what becomes of it as it may not start any more.

        The wait for the store ends as its handler would: by a cancel, by the worker's end, or when its time is up.

        Raises:
            StoreUnavailable: its time is up. Its handler has not begun, so that this is no failure of its own.
        """
        given, error = await self._calls.bounded(
            attempt, attempt.handler.acalled_with(attempt.claimed.id, text, version)
        )
        if attempt.interrupt is Interrupt.TIMEOUT:
            raise StoreUnavailable(
                "the store of large payloads does not answer",
                f"the arguments did not come within the attempt's {attempt.timeout_s:g} s",
                "look at the store; the job waits until it answers",
            )
        if error is not None and attempt.interrupt is None:
            raise error
        self._decider.store_answers()
        refused = self.refused_start(attempt)  # a good deal may have happened while they came
        if refused is not None:
            return refused
        assert given is not None
        return given

    async def _fetched_args(self, attempt: Attempt) -> bytes:
        claimed = attempt.claimed
        text = await self._engine.arun(
            store.fetch_args(claimed.id, holder=attempt.holder, attempt=claimed.attempt)
        )
        if text is None:
            raise lease_lost(claimed.id, claimed.attempt)
        return text.encode()

    def _give_up(self, attempt: Attempt, slot_lost: Callable[[], None]) -> None:
        """Go on without a handler that ignores its end. What it still does, the fence refuses."""
        self.count_hung()
        text = "%s did not end when asked (%s) and was given up; it may still be running here"
        log.error(text, attempt, attempt.interrupt)
        error = CancelRequested("the handler ignored its end and was given up")
        self.report(attempt, self._decider.decide(attempt, error))
        slot_lost()


class Reports:
    """Takes what becomes of each attempt of a worker, once: to the acker, the log and the counters."""

    def __init__(self, acker: Acker, telemetry: Telemetry, lines: JobLines) -> None:
        self._acker = acker
        self._telemetry = telemetry
        self._lines = lines

    def report(self, attempt: Attempt, decision: Decision) -> None:
        duration_s = time.monotonic() - attempt.started if attempt.started else 0.0
        if isinstance(decision, Succeeded):
            self._acker.put(attempt, decision, duration_s)
        elif decision is None:
            self._acker.lose(attempt, "lost its lease; its outcome is dropped")
        elif isinstance(decision, Committed):
            self._acker.committed(attempt, decision.moved, duration_s, decision.made)
        else:
            self._tell(attempt, decision, duration_s)
            self._acker.put(attempt, decision, duration_s)

    def _tell(self, attempt: Attempt, outcome: Outcome, duration_s: float) -> None:
        """Log and count a failure, once."""
        counters = self._telemetry.counters
        if isinstance(outcome, Failed | Retried):
            counters.add("attempts_failed")
            counters.add("jobs_failed" if isinstance(outcome, Failed) else "attempts_retried")
            self._lines.failed(attempt, outcome, duration_s)
        elif isinstance(outcome, Crashed):
            counters.add("attempts_crashed")
            self._lines.crashed(attempt, outcome, duration_s)
