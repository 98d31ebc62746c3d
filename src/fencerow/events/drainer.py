"""Reads one partition: hands its events over in order, acknowledges, puts aside what failed.

An event that fails does not stop the partition. It is put aside with those of its key that come after it, and
tried again when it is due; the cursor goes on. When its deliveries are spent it is parked, and its key goes on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import fencerow.events.asides as asides
import fencerow.events.consumers as consumers
from fencerow.core.model.describe import ErrorRecord
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.db.run import Operation
from fencerow.db.trouble import is_trouble
from fencerow.db.waits import set_within
from fencerow.events.asides import Asides
from fencerow.events.consumers import Aside, PartitionLease, Stored
from fencerow.events.declared import Consumer, PartitionPage
from fencerow.events.delivery import GRACE_S, ConsumerCalls
from fencerow.events.errors import PartitionLost
from fencerow.events.event import Event
from fencerow.events.holding import HoldPartition
from fencerow.events.judging import judged, tell_delivered, tell_failed

log = logging.getLogger("fencerow.events")

FLUSH_S = 0.1  # how long an acknowledgement may wait for others to go with
LAZY_PLACES = 1000  # how far a cursor that passes only what is not its own may lag behind
LAZY_S = 30.0
FAILED_MAX = 100  # with so many failed events waiting, it is the handler that is broken
NO_ASIDES = Asides(frozenset(), 0, None, 0)


class Drainer:
    """One partition in the hands of this process. Ends when it is stopped, or when the partition is lost."""

    def __init__(
        self,
        engine: Engine,
        consumer: Consumer,
        lease: PartitionLease,
        delivery: ConsumerCalls,
        telemetry: Telemetry,
        head: Callable[[], int],
    ) -> None:
        self.lease = lease
        self._engine = engine
        self._consumer = consumer
        self._delivery = delivery
        self._telemetry = telemetry
        self._head = head
        self._woken = asyncio.Event()
        self._stopping = False
        self._cursor = lease.cursor  # as the database knows it
        self._done = lease.cursor  # everything up to here is handled, or pending
        self._pending: list[Aside] = []
        self._flushed_at = time.monotonic()
        self._delivered = False  # something since the last flush
        self._careful = consumers.BATCH_ROWS if lease.careful else 0
        self._tried: int | None = None  # the event that is counted as perhaps deadly
        self._asides = NO_ASIDES
        self._looked_at = 0.0
        self._look_asides = True
        self._held_until: float | None = None  # the handler asked to be left alone until then

    # --- life ----------------------------------------------------------------------------------------

    def wake(self, *, asides: bool = False) -> None:
        """There may be something to read, or to try again."""
        self._look_asides = self._look_asides or asides
        self._woken.set()

    def stop(self) -> None:
        """End after the event that is being handled."""
        self._stopping = True
        self._woken.set()

    @property
    def is_idle(self) -> bool:
        """Whether it has read all there is and nothing is to be tried again by now."""
        return (
            not self._look_asides
            and self._done >= self._head()
            and self._pause_s() > 0
            and not self._pending
            and not self._is_held()
        )

    async def run(self) -> None:
        """Read until stopped. What it has not acknowledged is delivered again by whoever reads next."""
        try:
            while not self._stopping:
                self._woken.clear()
                self._let_go()
                if self._is_held() or not await self._round():
                    await self._wait()
            await self._flush(now=True)
        except PartitionLost as error:
            log.info("%s", error)
            await self._excuse()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError):
                raise
            if not is_trouble(error):
                raise
            # What is certain is in the database: whoever takes the partition next begins there.
            log.warning("partition %d of group %s is left: %s", self.lease.part, self.lease.group, error)
            await self._excuse()

    async def _excuse(self) -> None:
        """This process lived through the event that it tried: a slow machine must not make it look deadly."""
        if self._tried is not None:
            try:
                await self._engine.arun(consumers.excuse_event(self.lease, self._tried))
            except Exception as error:
                if not is_trouble(error):
                    raise

    async def _wait(self) -> None:
        await set_within(self._woken, self._pause_s())

    def _is_held(self) -> bool:
        return self._held_until is not None

    def _let_go(self) -> None:
        """End a hold whose time is over. Between two rounds only: in one under way the next event must not pass."""
        if self._held_until is not None and time.monotonic() >= self._held_until:
            self._held_until = None

    def _pause_s(self) -> float:
        if self._held_until is not None:
            return max(0.0, self._held_until - time.monotonic())
        due_in_s = self._asides.due_in_s
        if due_in_s is None:
            return LAZY_S
        return min(LAZY_S, max(0.0, self._looked_at + due_in_s - time.monotonic()))

    # --- reading -------------------------------------------------------------------------------------

    async def _round(self) -> bool:
        """Do some of what there is; false when there is nothing."""
        busy = await self._try_again()
        if self._is_held():
            return False
        if self._done < self._head() and self._asides.failed < FAILED_MAX:
            page = await self._engine.arun(
                consumers.read_events(
                    self.lease,
                    self._consumer.topics,
                    after=self._done,
                    partitions=self._consumer.partitions,
                )
            )
            together = self._together(page.events)
            for stored in page.events:
                if self._stopping and not (together is not None and together.has_begun(stored.seq)):
                    return True
                await self._deliver(stored, together)
                if self._is_held():
                    await self._flush(now=True)
                    return False
            self._done = page.seen
            if page.is_last:
                self._careful = 0
            busy = busy or bool(page.events) or not page.is_last
        await self._flush(now=bool(self._delivered))
        return busy

    def _together(self, events: Sequence[Stored]) -> PartitionPage | None:
        """These events as a page, if the handler takes pages. Not while one of them may be what kills readers."""
        if self._consumer.paged is None or self._careful:
            return None
        none = consumers.advance(self.lease, old=self._cursor, cursor=self._cursor)
        free = [each for each in events if each.key is None or each.key not in self._asides.keys]
        return self._consumer.paged([self._event(each, none) for each in free])

    async def _deliver(self, stored: Stored, page: PartitionPage | None) -> None:
        if stored.key is not None and stored.key in self._asides.keys:
            self._pass(stored, Aside(stored.seq, stored.id, stored.key, 0))
        elif not await self._is_deadly(stored):
            await self._hand(stored, page)
        if self._is_held():
            return
        if self._careful:
            self._careful -= 1
            await self._flush(now=True)
        elif time.monotonic() - self._flushed_at > FLUSH_S:
            await self._flush(now=True)

    async def _hand(self, stored: Stored, page: PartitionPage | None) -> None:
        acknowledge = consumers.advance(
            self.lease,
            old=self._cursor,
            cursor=stored.seq,
            asides=tuple(self._pending),
            careful=self._careful > 1,
        )
        event = self._event(stored, acknowledge)
        error = await self._outcome(event, page)
        if event.acknowledged:
            self._cursor, self._pending = stored.seq, []
            self._done, self._flushed_at, self._delivered = stored.seq, time.monotonic(), False
        elif error is None:
            self._done, self._delivered = stored.seq, True
        elif isinstance(error, HoldPartition):
            await self._hold(error)
        else:
            delay_s, parked, told = judged(self._consumer.rule, error, 0)
            tell_failed(self._telemetry, event, parked, told)
            aside = Aside(stored.seq, stored.id, stored.key, 1, delay_s, parked, told.to_json())
            self._pass(stored, aside)
            await self._flush(now=True)

    async def _hold(self, asked: HoldPartition) -> None:
        """Stay before this event. Who tried it lives, so it is not what kills readers."""
        self._held_until = time.monotonic() + asked.after_s
        await self._excuse()
        self._tried = None

    async def _is_deadly(self, stored: Stored) -> bool:
        """Whether this is an event of which readers die: then it is parked."""
        if not self._careful:
            return False
        tries = await self._engine.arun(consumers.try_event(self.lease, stored.seq))
        self._tried = stored.seq
        if tries <= self._consumer.crashes_max:
            return False
        told = ErrorRecord("", f"{tries - 1} readers died while they handled it", "", "crashes_exhausted")
        self._pass(stored, Aside(stored.seq, stored.id, stored.key, tries - 1, 0.0, True, told.to_json()))
        tell_failed(
            self._telemetry, self._event(stored, consumers.advance(self.lease, old=0, cursor=0)), True, told
        )
        return True

    def _pass(self, stored: Stored, aside: Aside) -> None:
        """Let the cursor pass an event undone."""
        self._pending.append(aside)
        self._done, self._delivered = stored.seq, True
        if not aside.parked:
            self._look_asides = True
            keys = self._asides.keys if aside.key is None else self._asides.keys | {aside.key}
            self._asides = Asides(keys, self._asides.failed, self._asides.due_in_s, self._asides.count + 1)

    async def _flush(self, *, now: bool) -> None:
        """Write how far it has come. Where nothing was its own, that has time."""
        behind = self._done - self._cursor
        waited_s = time.monotonic() - self._flushed_at
        if behind <= 0 or not (now or behind >= LAZY_PLACES or waited_s >= LAZY_S):
            return
        await self._engine.arun(
            consumers.advance(
                self.lease,
                old=self._cursor,
                cursor=self._done,
                asides=tuple(self._pending),
                careful=self._careful > 0,
            )
        )
        self._cursor, self._pending = self._done, []
        self._flushed_at, self._delivered = time.monotonic(), False

    # --- what was put aside --------------------------------------------------------------------------

    async def _try_again(self) -> bool:
        """Deliver what is due of what was put aside; false when nothing was."""
        if not (self._look_asides or self._pause_s() <= 0):
            return False
        await self._flush(now=bool(self._pending))
        due = await self._engine.arun(asides.due_asides(self.lease))
        for stored in due:
            if self._stopping or self._is_held():
                break
            await self._deliver_again(stored)
        self._asides = await self._engine.arun(asides.waiting(self.lease))
        self._looked_at = time.monotonic()
        self._look_asides = False
        return bool(due)

    async def _deliver_again(self, stored: Stored) -> None:
        number = await self._engine.arun(asides.try_aside(self.lease, stored.seq))
        if number is None:
            return
        event = self._event(stored, asides.end_aside(self.lease, stored.seq))
        if number > self._consumer.rule.attempts_max:
            told = ErrorRecord("", "its last reader died while it handled it", "", "crashes_exhausted")
            await self._postpone(event, 0.0, True, told)
            return
        error = await self._outcome(event)
        if isinstance(error, HoldPartition) and not event.acknowledged:
            await self._hold(error)
            await self._engine.arun(asides.hold_aside(self.lease, stored.seq, delay_s=error.after_s))
        elif error is not None and not event.acknowledged:
            await self._postpone(event, *judged(self._consumer.rule, error, number - 1))
        elif not event.acknowledged:
            await self._engine.arun(asides.end_aside(self.lease, stored.seq))

    async def _postpone(self, event: Event, delay_s: float, parked: bool, told: ErrorRecord) -> None:
        if await self._engine.arun(
            asides.postpone_aside(
                self.lease, event.position, delay_s=delay_s, parked=parked, error=told.to_json()
            )
        ):
            tell_failed(self._telemetry, event, parked, told)

    # --- handling ------------------------------------------------------------------------------------

    def _event(self, stored: Stored, acknowledge: Operation[None]) -> Event:
        return Event(
            stored,
            self._consumer.group,
            self._engine,
            acknowledge,
            is_async=self._consumer.is_async,
            # By then a handler that runs has been ended, or was left behind.
            idle_s=self._consumer.timeout_s + GRACE_S,
            packing=self._consumer.packing,
        )

    async def _outcome(self, event: Event, page: PartitionPage | None = None) -> BaseException | None:
        """Hand the event over; returns what the handler raised.

        A COMMIT that was refused is a failure like any other, and so is one without an answer: what is written
        about the failure waits for a commit that is still under way, and is refused if that acknowledged the event.

        Raises:
            PartitionLost: of the event's own transaction; only the database knows more.
        """
        began = time.monotonic()
        error = await self._delivery.hand(event, page)
        if isinstance(error, PartitionLost):
            raise error
        if error is not None and not event.acknowledged:
            return error
        if error is not None:
            log.error("the handler of %r failed after its commit", event, exc_info=error)
            return None
        tell_delivered(self._telemetry, event, time.monotonic() - began)
        return None
