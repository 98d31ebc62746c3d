"""Reads for the groups of one process: takes its share of their partitions, and has a drainer for each."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Sequence

import fencerow.events.consumers as consumers
from fencerow.core.config import CoreConfig
from fencerow.core.errors import FencerowError
from fencerow.core.model.ids import new_id
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.db.threads import Threads
from fencerow.events.declared import Consumer
from fencerow.events.delivery import ConsumerCalls
from fencerow.events.drainer import Drainer
from fencerow.events.errors import GroupMismatch, UnknownGroup
from fencerow.events.groups import make_group
from fencerow.events.log import Log

log = logging.getLogger("fencerow.events")

ASIDES_S = 5.0  # how often a redrive is looked for that nobody announced
SOON_S = 0.1
REFUSED_S = 60.0  # how often a group is asked for again that is there with other partitions


class Membership:
    """This process as a reader of one group."""

    def __init__(
        self,
        engine: Engine,
        consumer: Consumer,
        the_log: Log,
        config: CoreConfig,
        telemetry: Telemetry,
        threads: Threads,
        holder: str,
        keeper: Engine,
    ) -> None:
        self._engine = engine
        self._keeper = keeper
        self.consumer = consumer
        self._log = the_log
        self._config = config
        self._telemetry = telemetry
        self._delivery = ConsumerCalls(consumer, threads)
        self._holder = holder
        self._drainers: dict[int, Drainer] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._made = False
        self._refused_at = -REFUSED_S

    @property
    def is_idle(self) -> bool:
        """Whether everything that it holds is read, as far as it is due; a group that is refused has nothing to do."""
        return self._is_refused() or (self._made and all(each.is_idle for each in self._drainers.values()))

    def wake(self, *, asides: bool = False) -> None:
        for drainer in self._drainers.values():
            drainer.wake(asides=asides)

    async def look(self) -> None:
        """Renew, take what is free, give back what is too much, and have everything held read.

        A group that cannot be read as it is declared is left alone, loudly: jobs and other groups go on.

        Raises:
            FencerowError: a drainer met an error that is no trouble of the database.
        """
        if self._is_refused():
            return
        try:
            if not self._made:
                await self._make()
            self._collect()
            await self._hold()
        except GroupMismatch as error:
            self._refused_at = time.monotonic()
            log.error("group %s is not read by this process: %s", self.consumer.group, error)
        except UnknownGroup:
            self._made = False
            for drainer in self._drainers.values():
                drainer.stop()  # what they acknowledge is refused anyway
            log.warning(
                "group %s was removed while its consumer runs, and is made again", self.consumer.group
            )

    def _is_refused(self) -> bool:
        """Whether its number of partitions was refused not long ago. Somebody may remove the group in between."""
        return time.monotonic() - self._refused_at < REFUSED_S

    async def _make(self) -> None:
        group = self.consumer
        await self._engine.arun(
            make_group(group.group, group.topics, partitions=group.partitions, start=group.start)
        )
        self._made = True

    async def _hold(self) -> None:
        held = await asyncio.to_thread(
            self._keeper.run,
            consumers.hold_partitions(
                self.consumer.group,
                holder=self._holder,
                name=f"{platform.node()}-{os.getpid()}",
                lease_s=self._config.lease_s,
            ),
        )
        fences = {lease.part: lease.fence for lease in held.leases}
        for part, drainer in self._drainers.items():
            if fences.get(part) != drainer.lease.fence:
                drainer.stop()  # it was taken over or replayed: what it acknowledges is refused
        # Others have come: what is not being read goes first.
        surplus = sorted(fences, key=self._drainers.__contains__)[: held.surplus]
        for lease in held.leases:
            if lease.part not in self._drainers and lease.part not in surplus:
                self._begin(lease)
        if surplus:
            await self._give_back(surplus)

    async def end(self, deadline: float) -> None:
        """Let what is handled end until then, acknowledge it, and give everything back."""
        for drainer in self._drainers.values():
            drainer.stop()
        tasks = set(self._tasks.values())
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=max(0.0, deadline - time.monotonic()))
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=SOON_S)
        if self._made:
            await self._engine.arun(
                consumers.leave_group(self.consumer.group, list(self._drainers), holder=self._holder)
            )

    def _begin(self, lease: consumers.PartitionLease) -> None:
        drainer = Drainer(
            self._engine, self.consumer, lease, self._delivery, self._telemetry, lambda: self._log.head
        )
        self._drainers[lease.part] = drainer
        self._tasks[lease.part] = asyncio.create_task(
            drainer.run(), name=f"fencerow-events-{lease.group}-{lease.part}"
        )

    def _collect(self) -> None:
        """Forget drainers that have ended; an error of ours takes the worker down with it."""
        for part, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[part], self._drainers[part]
                if not task.cancelled():
                    task.result()

    async def _give_back(self, parts: Sequence[int]) -> None:
        """Give these to others, once the events that are being handled there are done; else at the next look."""
        tasks = [self._tasks[part] for part in parts if part in self._tasks]
        for part in parts:
            if part in self._drainers:
                self._drainers[part].stop()
        if tasks:
            await asyncio.wait(tasks, timeout=self._config.renew_s / 2)
        self._collect()
        given = [part for part in parts if part not in self._drainers]
        if given:
            await self._engine.arun(
                consumers.give_partitions(self.consumer.group, given, holder=self._holder)
            )


class GroupReader:
    """The chore: the process's membership in each of its groups."""

    def __init__(
        self,
        engine: Engine,
        declared: Sequence[Consumer],
        the_log: Log,
        config: CoreConfig,
        telemetry: Telemetry,
    ) -> None:
        self._config = config
        self._threads = Threads("fencerow-events")
        self._holder = new_id()
        # Leases are renewed on a connection of their own: handlers may use up all others for a while.
        # Where there is one writer, a second connection would wait for the same turn.
        can_wait_apart = not engine.traits.one_writer
        self._keeper = engine.keeper(patience_s=max(1.0, config.lease_s / 3)) if can_wait_apart else engine
        self._own_keeper = self._keeper is not engine
        self._memberships = [
            Membership(engine, each, the_log, config, telemetry, self._threads, self._holder, self._keeper)
            for each in declared
        ]
        self._due = 0.0
        the_log.on_growth(self.wake)

    @property
    def is_idle(self) -> bool:
        """Whether all events that were placed at the last look are handled, as far as they are due."""
        return all(each.is_idle for each in self._memberships)

    def wake(self, *, asides: bool = False) -> None:
        """The log has grown, or something is to be tried again."""
        for membership in self._memberships:
            membership.wake(asides=asides)

    async def look(self) -> float:
        """Renew the leases in time, and see to it that everything held is read."""
        asides = time.monotonic() >= self._due
        for membership in self._memberships:
            await membership.look()
        if asides:
            self._due = time.monotonic() + ASIDES_S
            self.wake(asides=True)
        return self._config.renew_s / 2

    async def end(self, within_s: float) -> None:
        """Finish what is handled, and give everything back."""
        deadline = time.monotonic() + within_s
        ends = await asyncio.gather(
            *(each.end(deadline) for each in self._memberships), return_exceptions=True
        )
        self._threads.close()
        if self._own_keeper:
            await asyncio.to_thread(self._keeper.close)
        for error in ends:
            if isinstance(error, FencerowError):
                log.warning("a group was left without saying so: %s", error)
            elif isinstance(error, BaseException):
                raise error
