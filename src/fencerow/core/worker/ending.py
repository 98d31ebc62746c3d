"""The end of a process whose event loop does not answer: what is safe is written from here, then it ends.

Nobody can stop a handler that blocks the loop, and whoever waits for the loop waits for it. So the thread that watches
the loop says what became of each job, under its fence, retires the registration, and ends the process.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Operation
from fencerow.core.errors import LoopBlocked, exits
from fencerow.core.model.outcome import Crashed, Outcome, Released
from fencerow.core.store import store
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Attempt, OutOfTime
from fencerow.core.worker.judging import Judge
from fencerow.core.worker.keeper import Keeper
from fencerow.core.worker.lease import Lease
from fencerow.core.worker.pending import (
    Pending,
    bounded,
    detail_of,
    failures_of,
    fence_of,
    requeue_of,
    result_of,
)

log = logging.getLogger("fencerow.worker")

EXIT_CODE = exits.BLOCKED
PATIENCE_S = 2.0  # for the database; what it does not answer, the sweeps of others settle


class Ending:
    """Ends the process. Called in the thread that watches the loop, while the loop does nothing."""

    def __init__(
        self,
        engine: Engine,
        lease: Lease,
        attempts: Mapping[tuple[str, int], Attempt],
        acker: Acker,
        judge: Judge,
        keeper: Callable[[], Keeper],
        *,
        exit_: Callable[[int], None] = os._exit,
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._attempts = attempts
        self._acker = acker
        self._judge = judge
        self._keeper = keeper
        self._exit = exit_

    def end(self, reason: str, late: Sequence[Attempt]) -> None:
        """Count those that ran out of time, write what had ended, give the rest back uncounted, and exit."""
        error = LoopBlocked(
            f"this worker ends its process: {reason}",
            "nothing can interrupt code that blocks the event loop",
            "make the handler a plain def, or process=True; a supervisor starts the worker again",
        )
        log.critical("%s", error)
        self._lease.start_nothing()  # should the loop come back in this moment
        steps: tuple[Callable[[], None], ...] = (
            self._keeper().halt,
            lambda: self._write(self._outcomes(late)),
            self._keeper().stop,
            *(handler.flush for handler in logging.root.handlers),
            sys.stdout.flush,
            sys.stderr.flush,
        )
        for step in steps:
            try:
                step()
            except BaseException as met:
                # The blocked handler may hold the very lock. What is missing is told by the sweeps of others.
                log.error("not all could be written at the end: %r", met)
        self._exit(EXIT_CODE)

    def _outcomes(self, late: Sequence[Attempt]) -> list[Pending]:
        known = {each.key: each for each in self._acker.unconfirmed()}
        for attempt in late:
            outcome = self._judge.judged(attempt, OutOfTime())
            if outcome is not None:
                known.setdefault(attempt.key, Pending(attempt, outcome, 0.0))
        for key, attempt in tuple(self._attempts.items()):
            why: Outcome = Released("its worker ended: another job blocked the event loop")
            known.setdefault(key, Pending(attempt, why, 0.0))
        return list(known.values())

    def _write(self, outcomes: Iterable[Pending]) -> None:
        engine = self._engine.keeper(patience_s=PATIENCE_S)  # the loop's own connections are of no use here
        groups: dict[tuple[str, str], list[Pending]] = {}
        for each in outcomes:
            if not isinstance(each.outcome, Crashed):  # a sweep says that of it as well
                groups.setdefault((each.kind, each.attempt.holder), []).append(each)
        try:
            for (kind, holder), group in groups.items():
                for batch in bounded(group):
                    engine.run(_written(kind, holder, batch))
        finally:
            engine.close()


def _written(kind: str, holder: str, batch: list[Pending]) -> Operation[Any]:
    """The statement that writes these outcomes under their fences; what it does not find is no longer ours."""
    if kind == "succeed":
        return store.succeed(
            [store.Success(*fence_of(each), result_of(each.outcome)) for each in batch], holder=holder
        )
    if kind == "fail":
        return store.fail(failures_of(batch), holder=holder)
    if kind == "stop":
        return store.stop(
            [store.Stop(*fence_of(each), detail_of(each.outcome)) for each in batch], holder=holder
        )
    return store.requeue([requeue_of(each) for each in batch], holder=holder)
