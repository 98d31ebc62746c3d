"""Carries out what operators want of this worker while it runs, and says what it does now.

An order reaches it with a renewal of the lease: at once after a wake-up, within `renew_s` without one. What
was wanted and what is stated stand side by side on the worker's row until they agree.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sized
from pathlib import Path

import msgspec

from fencerow.core.model.wanted import Blocked, Failing, Leave, Overdue, Share, ShareNow, Stated, Wanted
from fencerow.core.telemetry import Event, Telemetry
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.begun import Begun
from fencerow.core.worker.claims import Claims
from fencerow.core.worker.descriptors import DescriptorCount
from fencerow.core.worker.pool import Pool

log = logging.getLogger("fencerow.worker")

STATM = Path("/proc/self/statm")


class Control:
    """The orders of one worker process. They outlive a registration: after a death the process goes on as ordered.

    Used on the event loop, but for `on_renewed` and `stated`, which the keeper's thread calls.
    """

    def __init__(
        self,
        name: str,
        pools: list[Pool],
        held: Sized,
        claims: Claims,
        begun: Begun,
        telemetry: Telemetry,
        *,
        failing: Callable[[], tuple[Failing, ...]],
        blocked: Callable[[], Blocked | None],
        shortage: Callable[[], str | None],
        overdue: Callable[[], tuple[Overdue, ...]],
        behind_s: Callable[[], float],
        serve: Callable[[Share], None],
        resized: Callable[[Pool], None],
        hand_back: Callable[[Attempt, str], None],
        leave: Callable[[Leave], None],
        look_now: Callable[[], None],
        soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self.paused = False
        self.leaving = False
        self._version = 0
        self._holder: str | None = None  # under which the last order came
        self._name = name
        self._pools = pools
        self._held = held
        self._claims = claims
        self._begun = begun
        self._begun_stated: int | None = None
        self._telemetry = telemetry
        self._failing = failing
        self._blocked = blocked
        self._descriptors = DescriptorCount()
        self._shortage = shortage
        self._overdue = overdue
        self._behind_s = behind_s
        self._serve = serve
        self._resized = resized
        self._hand_back = hand_back
        self._leave = leave
        self._look_now = look_now
        self._soon = soon

    # --- in the keeper's thread --------------------------------------------------------------------------

    def on_renewed(self, holder: str, version: int, wanted: Wanted | None) -> None:
        """What the last renewal said is wanted; None while nobody has asked for anything."""
        begun_max = self._begun_stated
        self._soon(lambda: self._begun.confirmed(begun_max))
        if wanted is not None and version != self._version:
            self._soon(lambda: self.carry_out(holder, version, wanted))

    def stated(self) -> str:
        """What this worker does now, as JSON for its row."""
        self._begun_stated = self._begun.stated()
        said = Stated(
            version=self._version,
            shares=tuple(_share_now(pool) for pool in tuple(self._pools) if pool.queues),
            paused=self.paused,
            leaving=self.leaving,
            held=len(self._held),
            memory_bytes=memory_bytes(),
            begun_max=self._begun_stated,
            failing=self._failing(),
            blocked=self._blocked(),
            descriptors=self._descriptors.look(),
            shortage=self._shortage(),
            overdue=self._overdue(),
            clock_behind_s=round(self._behind_s(), 1),
        )
        return msgspec.json.encode(said).decode()

    # --- on the event loop -------------------------------------------------------------------------------

    def carry_out(self, holder: str, version: int, wanted: Wanted) -> None:
        """Become what is wanted, and state it at the next renewal, which is asked for now."""
        if version == self._version or (holder == self._holder and version < self._version):
            return  # carried out already; a renewal may bring it once more, and late
        self._holder, self._version = holder, version
        if not self.leaving:
            self._rearrange(wanted.shares)
            self._pause(wanted.paused)
        if wanted.leave is not None:
            self._leave(wanted.leave)
        log.info("worker %s was changed by order %d: %s", self._name, version, _described(wanted))
        self._telemetry.emit(Event.WORKER_CHANGED, worker=self._name, version=version)
        self._look_now()

    def refuses(self, attempt: Attempt, pool: Pool) -> str | None:
        """Why the answer to a claim that was under way is not wanted any more; None if it is."""
        if self.paused:
            return "the worker was paused before it started"
        if attempt.claimed.queue not in pool.queues:
            return "the worker no longer serves its queue"
        return None

    def _rearrange(self, shares: tuple[Share, ...]) -> None:
        """Each share is served by a pool that has served some of its queues, or else by a new one."""
        self._pools[:] = [pool for pool in self._pools if pool.queues or pool.running]  # over and done with
        free = [pool for pool in self._pools if pool.queues]
        for share in shares:
            pool = next((each for each in free if set(each.queues) & set(share.queues)), None)
            if pool is None:
                self._serve(share)
            else:
                free.remove(pool)
                self._change(pool, share.queues, share.slots)
        for pool in free:
            self._change(pool, (), 0)

    def _change(self, pool: Pool, queues: tuple[str, ...], slots: int) -> None:
        if (pool.queues, pool.slots) == (queues, slots):
            return
        for attempt in pool.change(queues, slots):
            self._hand_back(attempt, "the worker was changed before it started")
        self._claims.changed(pool)
        self._resized(pool)

    def _pause(self, paused: bool) -> None:
        if paused == self.paused:
            return
        self.paused = paused
        if not paused:
            self._claims.resume()
            return
        self._claims.pause()
        for pool in self._pools:
            for attempt in pool.take_all():
                self._hand_back(attempt, "the worker was paused before it started")


def memory_bytes() -> int | None:
    """What this process has in memory; None where it cannot be told cheaply."""
    if sys.platform != "linux":
        return None
    try:
        import resource

        return int(STATM.read_text("ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


def _share_now(pool: Pool) -> ShareNow:
    return ShareNow(pool.queues, pool.slots, pool.running, pool.waiting, round(pool.pace, 1))


def _described(wanted: Wanted) -> str:
    words = [f"{'+'.join(share.queues)} ({share.slots} slots)" for share in wanted.shares]
    words += ["paused"] if wanted.paused else []
    words += ["leaving"] if wanted.leave else []
    return ", ".join(words)
