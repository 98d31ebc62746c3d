"""The one table of what this process believes about its attempts.

An attempt stands here from its claim until the database has confirmed what became of it:

    waiting   in the buffer of a pool, in the order in which the slots take them (`pool.py`)
    started   taken from there, by a slot or to be given back
    ended     its outcome is with the acker, in the order in which outcomes are written (`acker.py`)

The database decides who owns what, by the fence in each statement. This table says what is asked of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from fencerow.core.errors import Busy
from fencerow.core.model.handler import Handler
from fencerow.core.model.wanted import OverdueAttempt
from fencerow.core.store.workers import Holding
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.pool import Pool
from fencerow.db.clock import CarriedClock
from fencerow.db.portion import is_too_much

AHEAD = 50  # beyond the slots: what ends while one group of outcomes is being written
STARTED_MAX = 5_000
GROW_S = 1.0  # between one suspect more and the next: a process is dear to start, and short jobs need few
PATIENCE_S = 10.0  # the suspects that are held have lived for so long: one more need not wait for their end
OVERDUE_MAX = 100  # stated at once; the rest follows when these are ended

Key = tuple[str, int]  # job and attempt


class Roster:
    """Changed on the event loop only. `overdue` and `started.stated` are asked in the keeper's thread."""

    def __init__(
        self,
        lease: WorkerLease,
        clock: CarriedClock,
        *,
        started_least: int,
        suspects_max: int,
        margin_s: float,
    ) -> None:
        self.held: dict[Key, Attempt] = {}
        self.pools: list[Pool] = []  # where those wait that have not started
        # Calls that are under way, also those of handlers that were given up and go on.
        self.at_work: set[Key] = set()
        # Ours in the database and not known here, since when (monotonic): the reply to a claim was lost.
        self.unknown: dict[Key, float] = {}
        self.started = StartLimit(started_least, self.held, self.pools, clock, lease)
        self.suspects = Suspects(suspects_max)
        self._lease_s = lease.lease_s
        self._margin_s = margin_s  # what an attempt may take to be ended, beyond its limit
        self._late_since: dict[Key, float] = {}

    def is_twice(self, attempt: Attempt) -> bool:
        """Whether a claim brought what is known here already: the database went back behind the first claim."""
        return attempt.key in self.held or attempt.key in self.at_work

    def take(self, attempt: Attempt) -> None:
        """A claim brought it."""
        self.held[attempt.key] = attempt
        if attempt.claimed.suspect:
            self.suspects.take(attempt)

    def forget(self, attempt: Attempt) -> bool:
        """What became of it is confirmed, or it is not ours; returns whether another suspect may be claimed for it."""
        self.held.pop(attempt.key, None)
        if self.started.met:
            self.started.go_on()
        return attempt.claimed.suspect and self.suspects.over(attempt)

    def queues(self) -> list[str]:
        """Which queues are served now."""
        return [queue for pool in self.pools for queue in pool.queues]

    def any_running(self) -> bool:
        """Whether any slot is at work."""
        return any(pool.running for pool in self.pools)

    def compare(
        self, holdings: Sequence[Holding], since_s: float, is_coming: Callable[[float], bool]
    ) -> list[Key]:
        """Compare what the database says is held here; returns what is to be released, for nobody here knows it.

        Nothing that was seen for the first time less than `since_s` seconds ago: it may be the answer to a claim
        that is under way. `is_coming` says whether a claim that was sent by a moment still waits for its answer.
        """
        now = time.monotonic()
        keys = [(each.id, each.attempt) for each in holdings]
        self.unknown = {key: self.unknown.get(key, now) for key in keys if key not in self.held}
        self.started.compared(any_unknown=any(since < now for since in self.unknown.values()))
        lost = [key for key, since in self.unknown.items() if now - since >= since_s and not is_coming(since)]
        for key in lost:
            del self.unknown[key]
        return lost

    def overdue(self) -> tuple[OverdueAttempt, ...]:
        """Which attempts may be ended by others, as it stands now: for this process could not.

        One that is past its time limit here, measured by this process's own clock, is so a whole lease later: its
        outcome had time to come. What waits for a slot for so long will not start here any more. It is withdrawn
        before it is stated: of the start and the withdrawal one wins.
        """
        now = time.monotonic()
        late = [attempt for attempt in list(self.held.values()) if self._is_late(attempt, now)]
        self._late_since = {attempt.key: self._late_since.get(attempt.key, now) for attempt in late}
        due = [each for each in late if now - self._late_since[each.key] >= self._lease_s]
        return tuple(OverdueAttempt(*each.key, begun=not each.withdraw()) for each in due[:OVERDUE_MAX])

    def _is_late(self, attempt: Attempt, now: float) -> bool:
        """An attempt that is over waits for its outcome to be written, and is never late."""
        if attempt.timeout_s is None or attempt.is_over:
            return False
        begins_by = attempt.started or attempt.taken + attempt.handler.batch_wait_s
        return now - begins_by > attempt.timeout_s + self._margin_s


class StartLimit:
    """How many may have started without their end being confirmed, so that a death is laid at few doors.

    The worker's row says it, and no more start here. When the worker dies, what stood further back in its lane cannot
    have started: reclaim lets it go without suspicion. That holds while the lanes are as the worker knows them. After a
    lost reply to a claim, or when the database's clock went back, the row must say first that all may have started:
    until then nothing starts.

    The limit rises when it is met and sinks when it is far away. A higher one holds once the row has it, a lower one
    before: whatever the row says, it was kept.
    """

    def __init__(
        self,
        least: int,
        held: Mapping[Key, Attempt],
        pools: Sequence[Pool],
        clock: CarriedClock,
        lease: WorkerLease,
    ) -> None:
        self.waiting = 0  # of what is held: in the buffers of the pools, which count it here
        self._least = self._granted = self._wanted = least
        self._held = held
        self._pools = pools
        self._clock = clock
        self._turns = clock.turns
        self._lease = lease  # its next renewal states what is wanted
        self._doubts = 0
        self._out_of_order: set[Key] = set()  # of what is held: claimed before the clock was seen to go back
        self._withheld = False  # nothing starts before the row says that all may have started
        self.met = False  # somebody was refused and waits for room

    def count(self) -> int:
        """Jobs that were taken from the pools, by a slot or to be released, and are not confirmed."""
        return len(self._held) - self.waiting

    def room(self) -> int:
        """How many more may start now. Where there is none, a higher limit is asked for."""
        if self._turns != self._clock.turns:
            self._went_back()
        if self._withheld:
            self.met = True
            return 0
        room = self._granted - len(self._held) + self.waiting
        if room <= 0:
            self._meet()
        return room

    def stated(self) -> int | None:
        """What the row shall say; None while the lanes may hold what nobody here knows, or in another order."""
        is_doubted = self._doubts or self._out_of_order or self._withheld or self._turns != self._clock.turns
        return None if is_doubted else self._wanted

    def confirmed(self, stated: int | None) -> None:
        """The row has it."""
        if stated is None and self._withheld:
            self._withheld = False
            self.go_on()
        if stated is not None and self._granted < stated <= self._wanted:
            self._granted = stated
            self.go_on()
        elif self._granted == self._wanted > self._least and 4 * self.count() < self._granted:
            self._granted = self._wanted = max(self._least, self._granted // 2)

    def go_on(self) -> None:
        """There is room again: whoever was refused looks once more."""
        self.met = False
        for pool in self._pools:
            pool.look_for_room()

    def doubt(self, error: BaseException) -> None:
        """A claim failed of this. Where its reply was lost it may have claimed all the same."""
        if not isinstance(error, Busy) and not is_too_much(error):  # of these nothing was stored
            self._doubts = 2
            self._withhold()

    def compared(self, *, any_unknown: bool) -> None:
        """The database's list of what is held here was compared with what is known."""
        self._doubts = 2 if any_unknown else max(0, self._doubts - 1)
        self._out_of_order &= self._held.keys()

    def _went_back(self) -> None:
        """What is held now was claimed in another order than the instants of the claims tell."""
        self._turns = self._clock.turns
        self._out_of_order = set(self._held)
        if self._out_of_order:
            self._withhold()

    def _withhold(self) -> None:
        self._withheld = True
        self._lease.renew_now()

    def _meet(self) -> None:
        self.met = True
        if self._wanted == self._granted < STARTED_MAX:
            self._wanted = min(STARTED_MAX, 2 * self._granted)
            self._lease.renew_now()


class Suspects:
    """The suspects that are held, and how many may be at once.

    Begins with one at a time and trusts in one more after each that ended well, up to `at_most`. So it does when those
    it holds have lived for a while: a job that takes an hour must not hold back all others. A crash brings it back to
    one: a job that takes more than its own process along, or that leaves too little memory for those beside it, then
    meets nobody.
    """

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._held: set[Attempt] = set()
        self._at_once = 1
        self._grown_at = 0.0
        self._taken_at = 0.0  # the last

    @property
    def held(self) -> int:
        """Suspects that are claimed here and not yet confirmed."""
        return len(self._held)

    def room(self) -> int:
        """How many more may be held now."""
        now = time.monotonic()
        if len(self._held) >= self._at_once and now - max(self._taken_at, self._grown_at) >= PATIENCE_S:
            self._grow(now)
        return max(0, self._at_once - len(self._held))

    def take(self, attempt: Attempt) -> None:
        """One more is held."""
        self._held.add(attempt)
        self._taken_at = time.monotonic()

    def over(self, attempt: Attempt) -> bool:
        """The attempt has ended; returns whether it was held, so that the next may be claimed."""
        if attempt not in self._held:
            return False
        self._held.discard(attempt)
        if attempt.crashed:
            self._at_once = 1
        elif attempt.started and attempt.interrupt is None:
            self._grow(time.monotonic())
        return True

    def sorted_out(
        self, handlers: Mapping[str, Handler], stays_here: Callable[[Handler], bool]
    ) -> tuple[list[str], list[str]]:
        """The names whose suspects run in child processes, and those of which no child can find the jobs.

        Of the latter one comes at a time: while one is held, there are none.
        """
        names: tuple[list[str], list[str]] = ([], [])
        for name, handler in handlers.items():
            names[stays_here(handler)].append(name)
        if any(stays_here(attempt.handler) for attempt in self._held):
            return names[0], []
        return names

    def _grow(self, now: float) -> None:
        if self._at_once < self._at_most and now - self._grown_at >= GROW_S:
            self._at_once += 1
            self._grown_at = now
