"""Wake-ups: those of others come in, what this worker queued or ended is announced.

Nothing depends on a hint; polling and the sweeps lie beneath them always.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.background.chores import Chores
from fencerow.core.model.lane import label_of
from fencerow.core.model.wakeup import Arrived, CancelAsked, Ordered, Queued, decode, encode, encode_ended
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import in_lanes
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.pool import Pool
from fencerow.db.engine import Engine


class WakeUps:
    """Passes wake-ups to claimers, keeper and chores, and sends those of this worker. Used on the event loop only."""

    def __init__(
        self,
        engine: Engine,
        lease: WorkerLease,
        pools: Sequence[Pool],
        chores: Chores,
        labels: Sequence[str] = (),
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._pools = pools
        self._chores = chores
        self._labels = frozenset(labels)

    def wake_claimers(self) -> None:
        """All of this worker shall look at once: what kept one of them from its claim is over."""
        for pool in self._pools:
            pool.look.woken.set()

    def look_again(self) -> None:
        """Hints may have been lost, or nothing was claimed for a while: sweep every queue at once."""
        for pool in self._pools:
            pool.look.look_again()

    def made_room(self) -> None:
        """Jobs of this worker have ended: where a limit was full, there may be room."""
        for pool in self._pools:
            pool.look.made_room()

    def announce_queued(self, jobs: Sequence[Requeued]) -> None:
        """What we put behind our own marks lowers them at once, here and elsewhere."""
        if any(job.waits for job in jobs):
            self.announce_free_turns()
        self.announce(in_lanes(jobs))

    def announce(self, queued: Sequence[Queued]) -> None:
        """The same, said by lane already."""
        if not queued:
            return
        self._engine.wake([encode(each) for each in queued])
        for each in queued:
            self._hint(each.queue, each.priority, each.run_at_us, each.lane)

    def announce_free_turns(self) -> None:
        """Jobs with turns have ended or wait again here: this worker gives their turns to the next at once."""
        self._chores.tell(Arrived())

    def announce_ended(self, ids: list[str], *, succeeded: bool = False) -> None:
        """Somebody waits for these. `succeeded`: all of them are known to."""
        if ids:
            self._engine.wake(encode_ended(ids, succeeded=succeeded))

    def _hint(self, queue: str, priority: int, run_at_us: int | None, lane: str) -> None:
        label = label_of(lane)
        if label is not None and label not in self._labels:
            return  # it waits for others
        for pool in self._pools:
            pool.look.hint(queue, priority, run_at_us, lane)

    def hear(self, message: str | None) -> None:
        """Take a wake-up. None: some may have been missed."""
        if message is None:
            self.look_again()
            self._chores.tell(None)
            return
        decoded = decode(message)
        match decoded:
            case Queued(queue, priority, run_at_us, lane):
                self._hint(queue, priority, run_at_us, lane)
            case CancelAsked(holder, _) | Ordered(holder) if holder == self._lease.holder:
                self._lease.renew_now()
            case None:
                pass  # of a newer Fencerow
            case _:
                self._chores.tell(decoded)
