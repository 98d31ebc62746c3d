"""All claimers of a worker, each with its loop: who is woken by what, and whether any of them is at work."""

from __future__ import annotations

from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.claimer import Claimer
from fencerow.core.worker.loop import Loop
from fencerow.core.worker.pool import Pool


class Claims:
    """The claimers and their loops. Used on the event loop only."""

    def __init__(self, telemetry: Telemetry, *, endures_s: float) -> None:
        self._telemetry = telemetry
        self._endures_s = endures_s
        self._loops: dict[Claimer, Loop] = {}

    @property
    def loops(self) -> list[Loop]:
        return list(self._loops.values())

    def add(self, claimer: Claimer, *, paused: bool = False) -> Loop:
        """One more claimer; the caller runs its loop."""
        claimer.paused = paused
        name = f"claimer {' '.join(claimer.pool.queues)}"
        loop = Loop(name, claimer.tick, self._telemetry, endures_s=self._endures_s)
        self._loops[claimer] = loop
        return loop

    def changed(self, pool: Pool) -> None:
        """The pool serves other queues; without any its loop ends after the answer that is under way."""
        for claimer, loop in tuple(self._loops.items()):
            if claimer.pool is not pool:
                continue
            claimer.follow()
            if pool.queues:
                loop.wake()
            else:
                loop.stop()
                del self._loops[claimer]

    def wake(self, queue: str) -> None:
        """Look again at once, without knowing more than that there may be reason to."""
        for claimer, loop in self._loops.items():
            if queue in claimer.views:
                loop.wake()

    def hint(self, queue: str, priority: int, run_at_us: int) -> None:
        """A job was put there: look, from no later than its place on."""
        for claimer, loop in self._loops.items():
            if queue in claimer.views:
                claimer.views[queue].hint(priority, run_at_us)
                loop.wake()

    def look_again(self) -> None:
        """Hints may have been lost: sweep every queue at once."""
        for claimer in self._loops:
            for view in claimer.views.values():
                view.look_again()
        for loop in self._loops.values():
            loop.wake()

    def are_idle(self) -> bool:
        """Whether a look from the beginning found nothing due in any queue."""
        return all(view.is_idle() for claimer in self._loops for view in claimer.views.values())

    def any_sent_by(self, moment: float) -> bool:
        """Whether a claim sent by then (monotonic seconds) still waits for its answer."""
        sent = [claimer.claiming_since for claimer in self._loops]
        return any(each is not None and each <= moment for each in sent)

    def pause(self) -> None:
        """Claim nothing more."""
        for claimer in self._loops:
            claimer.paused = True

    def resume(self) -> None:
        """Claim again, from the beginning of every queue."""
        for claimer in self._loops:
            claimer.paused = False
        self.look_again()

    def stop(self) -> None:
        """End the loops, each after the answer that is under way."""
        for loop in self._loops.values():
            loop.stop()
