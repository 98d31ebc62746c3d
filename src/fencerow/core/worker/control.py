"""What the keeper brings to the event loop (orders, cancels, losses), and what the worker states through it.

An order reaches the worker with a renewal of the lease: at once after a wake-up, within `renew_s` without one. What
was wanted and what is stated stand side by side on the worker's row until they agree.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from fencerow.core.background.loop import Fatal, Loops
from fencerow.core.chore import Site
from fencerow.core.model.wanted import Blocked, Descriptors, Leave, SlotGroup, SlotGroupNow, Stated, Wanted
from fencerow.core.store import store
from fencerow.core.store.workers import Holding
from fencerow.core.telemetry import Fact
from fencerow.core.worker.attempt import Interrupt
from fencerow.core.worker.claims import Claims
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.life import Life
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.roster import Key, Roster
from fencerow.core.worker.wakeups import WakeUps
from fencerow.db.clock import CarriedClock
from fencerow.db.descriptors import DescriptorCount
from fencerow.db.memory import resident_bytes
from fencerow.db.recent import Recent
from fencerow.db.service import soon
from fencerow.db.text import amount
from fencerow.db.trouble import is_trouble

log = logging.getLogger("fencerow.worker")

LOST_REPLY = '{"reason":"lost reply"}'


class Control:
    """The orders of one worker process. They outlive a registration: after a death the process goes on as ordered.

    `leave` is called with an operator's order to end. Used on the event loop, but for what the keeper's thread calls.
    """

    def __init__(
        self,
        site: Site,
        lease: WorkerLease,
        clock: CarriedClock,
        roster: Roster,
        life: Life,
        claims: Claims,
        wakeups: WakeUps,
        loops: Loops,
        block: Recent[Blocked],
        fatal: Fatal,
        leave: Callable[[Leave], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._engine = site.engine
        self._config = site.config
        self._telemetry = site.telemetry
        self._name = site.worker
        self._lease = lease
        self._clock = clock
        self._roster = roster
        self._life = life
        self._claims = claims
        self._wakeups = wakeups
        self._loops = loops
        self._block = block
        self._fatal = fatal
        self._leave = leave
        self._version = 0
        self._holder: str | None = None  # under which the last order came
        self._started_stated: int | None = None
        self._descriptors = DescriptorCount()

    # --- in the keeper's thread --------------------------------------------------------------------------

    def on_renewed(self, holder: str, version: int, wanted: Wanted | None) -> None:
        """What the last renewal said is wanted; None while nobody has asked for anything."""
        soon(self._loop, self._roster.started.confirmed, self._started_stated)
        if wanted is not None and version != self._version:
            soon(self._loop, self.carry_out, holder, version, wanted)

    def on_holdings(self, holder: str, holdings: list[Holding]) -> None:
        """What the database says this registration runs, read after the last renewal."""
        soon(self._loop, self._compare, holder, holdings)

    def on_death(self, holder: str) -> None:
        """Others have declared this registration dead; everything it held is lost."""
        soon(self._loop, self._lose, holder)

    def on_keeper_failed(self, error: BaseException) -> None:
        """The keeper cannot go on."""
        soon(self._loop, self._fatal.tell, error, "the keeper")

    def stated(self) -> str:
        """What this worker does now, as JSON for its row."""
        self._started_stated = self._roster.started.stated()
        descriptors = self._descriptors.look()
        said = Stated(
            version=self._version,
            slot_groups=tuple(_slot_group_now(pool) for pool in tuple(self._roster.pools) if pool.queues),
            paused=self._life.paused,
            leaving=self._life.leaving,
            held=len(self._roster.held),
            memory_bytes=resident_bytes(),
            begun_max=self._started_stated,
            failing=self._loops.failing(),
            blocked=self._block.told(),
            descriptors=None if descriptors is None else Descriptors(*descriptors),
            shortage=self._loops.shortage(),
            too_large=self._loops.too_large(),
            overdue=self._roster.overdue(),
            clock_behind_s=round(self._clock.behind_s(), 1),
        )
        return msgspec.json.encode(said).decode()

    # --- on the event loop -------------------------------------------------------------------------------

    def carry_out(self, holder: str, version: int, wanted: Wanted) -> None:
        """Become what is wanted, and state it at the next renewal, which is asked for now."""
        if version == self._version or (holder == self._holder and version < self._version):
            return  # carried out already; a renewal may bring it once more, and late
        self._holder, self._version = holder, version
        if not self._life.leaving:
            self._rearrange(wanted.slot_groups)
            self._pause(wanted.paused)
        if wanted.leave is not None:
            self._leave(wanted.leave)
        log.info("worker %s was changed by order %d: %s", self._name, version, _described(wanted))
        self._telemetry.emit(Fact.WORKER_CHANGED, worker=self._name, version=version)
        self._lease.renew_now()

    def _rearrange(self, groups: Sequence[SlotGroup]) -> None:
        """Each slot group is served by a pool that has served some of its queues, or else by a new one."""
        pools = self._roster.pools
        pools[:] = [pool for pool in pools if pool.queues or pool.running]  # over and done with
        free = [pool for pool in pools if pool.queues]
        for group in groups:
            pool = next((each for each in free if set(each.queues) & set(group.queues)), None)
            if pool is None:
                self._life.fill(self._claims.open(group.queues, group.slots))
            else:
                free.remove(pool)
                self._change(pool, group.queues, group.slots)
        for pool in free:
            self._change(pool, (), 0)

    def _change(self, pool: Pool, queues: tuple[str, ...], slots: int) -> None:
        if (pool.queues, pool.slots) == (queues, slots):
            return
        for attempt in pool.change(queues, slots):
            self._life.release(attempt, "the worker was changed before it started")
        self._claims.changed(pool)
        self._life.fill(pool)

    def _pause(self, paused: bool) -> None:
        if paused == self._life.paused:
            return
        self._life.paused = paused
        if not paused:
            self._wakeups.look_again()
            return
        for pool in self._roster.pools:
            for attempt in pool.take_all():
                self._life.release(attempt, "the worker was paused before it started")

    def _compare(self, holder: str, holdings: list[Holding]) -> None:
        """Pass cancels on, and release jobs that a lost reply left to us without our knowing."""
        held = self._roster.held
        asked = {(each.id, each.attempt) for each in holdings if each.cancel_requested}
        for key in asked & held.keys():
            held[key].end(Interrupt.CANCEL, self._config.cancel_raise_s)
        if asked:
            self._let_go_asked()
        for key in self._roster.compare(holdings, self._config.renew_s, self._claims.any_sent_by):
            log.warning("job %s attempt %d is ours but unknown here (a lost reply); letting it go", *key)
            self._telemetry.counters.add("strangers_released")
            self._life.spawn(self._release_unknown(holder, key, stop=key in asked))

    async def _release_unknown(self, holder: str, key: Key, *, stop: bool) -> None:
        """Release it; a job of which a cancel was asked is never queued again."""
        job_id, attempt = key
        try:
            if stop:
                stopped = store.Stop(job_id, attempt, LOST_REPLY)
                moved = await self._engine.arun(store.stop([stopped], holder=holder))
                self._wakeups.announce_ended([job.id for job in moved if job.awaited])
            else:
                released = store.Requeue(id=job_id, attempt=attempt, kind="released", detail=LOST_REPLY)
                requeued = await self._engine.arun(store.requeue([released], holder=holder))
                self._wakeups.announce_queued(requeued)
        except Exception as error:
            if not is_trouble(error):
                raise
            log.warning("could not release job %s: %s; the next renewal tries again", job_id, error)

    def _lose(self, holder: str) -> None:
        """Declared dead: everything held under that registration belongs to others now."""
        for attempt in list(self._roster.held.values()):
            if attempt.holder == holder:
                attempt.end(Interrupt.LOST)
        self._let_go_asked()

    def _let_go_asked(self) -> None:
        for pool in self._roster.pools:
            pool.let_go_asked()


def _slot_group_now(pool: Pool) -> SlotGroupNow:
    return SlotGroupNow(pool.queues, pool.slots, pool.running, pool.waiting, round(pool.pace, 1))


def _described(wanted: Wanted) -> str:
    words = [f"{'+'.join(group.queues)} ({amount(group.slots, 'slot')})" for group in wanted.slot_groups]
    words += ["paused"] if wanted.paused else []
    words += ["leaving"] if wanted.leave else []
    return ", ".join(words)
