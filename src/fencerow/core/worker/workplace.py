"""Everything in which attempts run: this process, its children, and who may be where."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencerow.core.config import Config
from fencerow.core.db.engine import Engine
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.alone import Alone
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.brought import Here, brought
from fencerow.core.worker.executor import Executor
from fencerow.core.worker.judging import Judge
from fencerow.core.worker.lease import Lease
from fencerow.core.worker.middleware import Middleware
from fencerow.core.worker.onloop import OnLoop
from fencerow.core.worker.placing import Placing
from fencerow.core.worker.reporting import Reports
from fencerow.core.worker.suspects import Suspects


class Workplace:
    """Puts the parts together, and asks them what the worker wants to know."""

    def __init__(
        self,
        engine: Engine,
        lease: Lease,
        acker: Acker,
        telemetry: Telemetry,
        middleware: Middleware,
        config: Config,
    ) -> None:
        # SQLite has one writer: who holds it for long makes everybody's claims and outcomes wait.
        held_max_s = config.lease_s / 3 if engine.dialect == "sqlite" else None
        self.on_loop = OnLoop()
        self.judge = judge = Judge(engine, held_max_s)
        report = Reports(acker, telemetry).report
        self._executor = Executor(
            engine,
            lease,
            report,
            telemetry,
            middleware,
            judge=judge,
            kill_s=config.cancel_kill_s,
            unknown_max_s=config.unknown_max_s,
            held_max_s=held_max_s,
            on_loop=self.on_loop,
        )
        processes = brought().processes
        self._apart = None
        if processes is not None and config.url is not None:  # else a child would not know where to write
            self._apart = processes.make(self._executor, judge, report, config, held_max_s)
        self.alone = Alone()
        self._placing = Placing(engine, Here(self._executor), self._apart, self.alone, judge, report)
        self.suspects = Suspects(config.suspects_max, self._placing.stays_here)

    @property
    def hung_count(self) -> int:
        """Handlers that were given up and still run."""
        return self._executor.hung_count

    async def run(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> bool:
        """Run attempts of one name. Returns whether the slot is still the caller's; else `slot_lost` was called."""
        return await self._placing.run(attempts, slot_lost)

    def is_withheld(self) -> bool:
        """Whether nothing should be claimed: a suspect has the process for itself, or waits a moment for that."""
        return self.alone.is_taken

    def abandon(self) -> None:
        """Nothing has run yet: let the idle threads go."""
        self._executor.close()

    async def close(self) -> None:
        """End the threads that are idle, and every child."""
        self._executor.close()
        if self._apart is not None:
            await self._apart.close()
