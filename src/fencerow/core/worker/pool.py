"""A pool: the slots that serve one or several queues, and the claimed jobs that wait for one of them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol

from fencerow.core.model.lane import STRICT, Ageing
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.gathering import Entry, Gatherings, kind_of
from fencerow.core.worker.look import QueueLook

PREFETCH_MAX = 1000
WINDOW_S = 0.25  # over which the pace of the slots is measured
WINDOW_BRIEF_S = 0.02
IN_A_ROW_MAX = 50  # jobs that the slots may take before the event loop gets its turn
# Of the event loop, beside the one before slots take more. In the first an answer is read, in the next whoever waits
# for it sends what comes next, and then the slots go on: without them each answer would wait for two rows of jobs.
TURNS_OF_AN_ANSWER = 2
STALE_S = 3.0  # a claimed job that waits longer than this for a slot is better off elsewhere


class StartBound(Protocol):
    """How many jobs may start, in this worker as a whole; `waiting` counts those in the buffers of all its pools."""

    waiting: int

    def room(self) -> int:
        """How many more may start now."""
        ...


class Pool:
    """Slots and the short buffer before them. Used on the event loop only.

    `look` is what is known of its queues, and wakes the claimer that feeds it.
    """

    def __init__(
        self,
        queues: Sequence[str],
        slots: int,
        prefetch_s: float,
        poll_max_s: float,
        limit: StartBound,
        ageing: Ageing = STRICT,
    ) -> None:
        self.queues = tuple(queues)
        self.look = QueueLook(poll_max_s, ageing)
        self._ageing = ageing
        self.look.follow(self.queues)
        self.slots = slots
        self.reserved = 0  # jobs that are being claimed beside the claimer
        self.is_taken_for = (
            False  # an operation is on its way that asks one thing after the other, and claims then
        )
        self.open = 0  # slots that take jobs; one that runs a job when there are too many ends after it
        self.running = 0
        self._prefetch_s = prefetch_s
        self._limit = limit
        # A heap: higher priority first, or with age as it counts, then in order of arrival.
        self._ready: list[Entry] = []
        self._gatherings = Gatherings(
            self._line_up
        )  # of batches that wait for more, before they wait for a slot
        self._numbers = count()
        self._idle: deque[asyncio.Future[None]] = deque()  # slots that wait, the longest first
        self._stirs = False  # a slot that was woken has not come yet; it will take a job, or wake the next
        self._taken_in_a_row = 0
        self._window_began = time.monotonic()
        self._window_count = self._window_runs = 0  # jobs, and what a slot was free after: a job or a batch
        self.pace = 0.0  # jobs that ended in a second, when it was last measured
        self._buffer = 0
        self._is_awaited = False  # the claimer knows of due jobs and waits for room
        self._reach = 1  # jobs that a free slot is expected to take: as many as the last one could

    @property
    def waiting(self) -> int:
        """Claimed jobs that wait for a slot, or for more to come with them into one call."""
        return len(self._ready) + self._gatherings.count

    def wanted(self) -> int:
        """How many jobs the next claim should ask for; 0 while the buffer is more than half full.

        Nothing while something claims beside the claimer: what was claimed first has to come first, for of those that a
        worker had when it died the first are taken for those that had begun.
        """
        buffer = self._buffer
        if self.reserved or (self._ready and len(self._ready) > buffer // 2):
            return 0
        free = max(0, self.slots - self.running)
        asked = max(
            0,
            min(free * self._reach + buffer, max(free + buffer, PREFETCH_MAX)) - len(self._ready),
        )
        if free and self._gatherings.count:
            return max(asked, min(self._gatherings.missing(), PREFETCH_MAX))
        return asked

    def free(self) -> int:
        """Slots for which nothing is claimed yet."""
        return max(0, self.slots - self.running - len(self._ready) - self.reserved)

    def room(self) -> int:
        """How many jobs slots and buffer would take, also where it is more than half full."""
        return max(0, self.slots - self.running + self._buffer - len(self._ready) - self.reserved)

    def await_room(self) -> None:
        """Wake the claimer, once, when there is room: it knows of more than it may claim now."""
        self._is_awaited = True

    def put(self, attempt: Attempt) -> None:
        line_us = attempt.claimed.run_at_us if attempt.line_us is None else attempt.line_us
        entry = self._ageing.rank(attempt.claimed.priority, line_us), next(self._numbers), attempt
        self._limit.waiting += 1
        if attempt.handler.batch_wait_s and not attempt.claimed.suspect:
            self._gatherings.add(entry)
        else:
            self._line_up([entry])

    def stir(self) -> None:
        """What a slot runs waits for something: wake others for the jobs that wait here, two, so that they are many
        soon. A slot whose handlers wait for nothing works the jobs off alone, sooner than slots that take turns."""
        for _ in range(min(2, len(self._ready))):
            self._wake_one()

    def at_hand(self) -> Attempt | None:
        """The next claimed job, if it may be taken at once; else ask `get`."""
        may_take = self._taken_in_a_row < IN_A_ROW_MAX and self.open <= self.slots
        if not may_take or not self._ready or self._limit.room() <= 0:
            return None
        self._taken_in_a_row += 1
        return self._taken()

    async def get(self) -> Attempt | None:
        """The next claimed job; waits for one. None: there are slots enough without the one that asks."""
        self._taken_in_a_row += 1
        if self._taken_in_a_row > IN_A_ROW_MAX:
            # Handlers that wait for nothing would keep the loop from the claims and outcomes that go on meanwhile.
            self._taken_in_a_row = 0
            for _ in range(1 + TURNS_OF_AN_ANSWER * self.is_taken_for):
                await asyncio.sleep(0)
        while self.open <= self.slots and not (self._ready and self._limit.room() > 0):
            await self._arrival()
        if self.open > self.slots:
            self.open -= 1
            if self._ready:
                self._wake_one()  # this one was woken for a job that it does not take
            return None
        return self._taken()

    def _taken(self) -> Attempt:
        self.running += 1
        _, _, attempt = heappop(self._ready)
        self._limit.waiting -= 1
        if not attempt.claimed.suspect:
            self._reach = attempt.handler.batch_max or 1
        if self._is_awaited and len(self._ready) <= self._buffer // 2:  # else none is wanted
            self.say_room()
        return attempt

    def joined(self, first: Attempt) -> list[Attempt]:
        """The attempt with those that wait here and can come into its call, up to its `batch_max`.

        They are of the same name and time limit, the one limit of the call. A suspect shares with nobody: a
        death must count against one job. One that was asked to end will not start, and brings nobody to a start.
        """
        room = min((first.handler.batch_max or 1) - 1, self._limit.room())
        if first.claimed.suspect or first.asked_to_end or room < 1:
            return [first]
        alike = [entry for entry in self._ready if _may_share(first, entry[2])]
        alike += self._gatherings.alike(first)  # they have waited for this call
        taken = sorted(alike, key=lambda entry: entry[:2])[:room]
        return [first, *self._taken_out(taken)]

    def done(self, jobs: int = 1) -> None:
        """A slot is free again; it has worked on so many jobs. With none, all were released without a start: that
        says nothing of how many jobs are worked off, by which the next claim is measured."""
        self.running -= 1
        if jobs:
            self._window_count += jobs
            self._window_runs += 1
            self._measure()
        if self._is_awaited and len(self._ready) <= self._buffer // 2:  # else none is wanted
            self.say_room()

    def change(self, queues: Sequence[str], slots: int) -> list[Attempt]:
        """Serve these queues with so many slots from now on; what runs goes on.

        Returns the waiting jobs that are better off elsewhere: of a queue that is not served any more, or, with
        fewer slots, beyond those that are free.
        """
        room = max(0, slots - self.running) if slots < self.slots else self.waiting
        if slots < self.slots:
            self.pace, self._buffer, self._reach = 0.0, 0, 1
        self.queues, self.slots = tuple(queues), slots
        self.look.follow(self.queues)
        kept = 0
        returned: list[Entry] = []
        for entry in self._in_order():
            if entry[2].claimed.queue in self.queues and kept < room:
                kept += 1
            else:
                returned.append(entry)
        better_off = self._taken_out(returned)
        self._wake_all()  # those that have become too many end
        self.say_room()
        return better_off

    def take_stale(self) -> list[Attempt]:
        """Claimed jobs that wait although the slots were thought to be quicker: give them back."""
        if self.running < self.slots:
            return []
        limit = time.monotonic() - STALE_S
        stale = [entry for entry in self._ready if entry[2].taken + entry[2].handler.batch_wait_s < limit]
        if not stale:
            return []
        self.pace, self._buffer, self._reach = 0.0, 0, 1
        return self._taken_out(stale)

    def take_all(self) -> list[Attempt]:
        """Empty the buffer: the worker shuts down or has lost its lease."""
        return self._taken_out(self._in_order())

    def let_go_asked(self) -> None:
        """Some were asked to end: those that wait for more to come into their call wait no longer for that."""
        self._gatherings.let_go_asked()

    def look_for_room(self) -> None:
        """More jobs may start: those slots that wait look whether there is one for them."""
        if self._ready:
            self._wake_all()

    def say_room(self) -> None:
        """Wake the claimer, if it waits for room and there is some."""
        if self._is_awaited and self.queues and self.wanted() > 0:
            self._is_awaited = False
            self.look.woken.set()

    def _line_up(self, entries: Iterable[Entry]) -> None:
        """These wait for a slot from now on."""
        for entry in entries:
            heappush(self._ready, entry)
        if not self._stirs:
            self._wake_one()

    def _in_order(self) -> list[Entry]:
        """All that wait, as the slots would take them."""
        return sorted((*self._ready, *self._gatherings), key=lambda entry: entry[:2])

    def _taken_out(self, entries: Sequence[Entry]) -> list[Attempt]:
        """These wait no more."""
        numbers = {number for _, number, _ in entries}
        self._limit.waiting -= len(numbers)
        self._ready = [entry for entry in self._ready if entry[1] not in numbers]
        heapify(self._ready)
        self._gatherings.remove(entries)
        return [attempt for _, _, attempt in entries]

    def _measure(self) -> None:
        """A window ends early when the slots were filled several times over: a burst must not start slowly."""
        now = time.monotonic()
        enough_s = WINDOW_BRIEF_S if self._window_runs >= 4 * self.slots else WINDOW_S
        if now - self._window_began >= enough_s:
            self.pace = self._window_count / (now - self._window_began)
            self._window_began, self._window_count, self._window_runs = now, 0, 0
            # What the slots work off in `prefetch_s` at this pace; nothing before anything was measured.
            buffer = int(self.pace * self._prefetch_s)
            # A pace of a few jobs a second is long work: it is left to whoever has a free slot.
            self._buffer = min(PREFETCH_MAX, buffer) if buffer > self.slots else 0

    async def _arrival(self) -> None:
        """Wait to be woken. One arrival wakes one slot: a hundred idle ones must not all look."""
        self._taken_in_a_row = 0
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            if woken.done() and not woken.cancelled():
                self._wake_one()  # it was meant for whoever takes the job
            raise
        finally:
            self._stirs = False

    def _wake_one(self) -> None:
        while self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                self._stirs = True
                return

    def _wake_all(self) -> None:
        for _ in range(len(self._idle)):
            self._wake_one()


def _may_share(first: Attempt, other: Attempt) -> bool:
    return kind_of(other) == kind_of(first) and not other.claimed.suspect
