"""The chore by which a worker runs relays: says that it does, takes its share of what comes in, and reads it."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Mapping, Sequence
from typing import Final

import fencerow.relay.parts as parts
import fencerow.relay.relays as relays
from fencerow.core.app.app import JobsApp
from fencerow.core.chore import Chore
from fencerow.core.errors import FencerowError
from fencerow.core.model.ids import new_id
from fencerow.db.engine import Engine
from fencerow.db.text import said_of
from fencerow.db.trouble import is_trouble
from fencerow.relay.broker import Source
from fencerow.relay.declared import Declared, RelayIn, RelayOut
from fencerow.relay.errors import BrokerAway
from fencerow.relay.standing import Standing
from fencerow.relay.taker import Taker

log = logging.getLogger("fencerow.relay")

LOOK_S: Final = 2.0  # how soon a pause and its end are seen
PARTS_S: Final = 300.0  # how often the broker is asked for more parts
SOON_S: Final = 0.5


class Outgoer:
    """This process as one that sends for a relay."""

    def __init__(self, declared: RelayOut) -> None:
        self.declared = declared
        self.standing = declared.standing
        self.direction = "out"
        self.is_idle = True  # its group says whether there is something to send
        declared.outward.enter()

    async def look(self) -> None:
        """Nothing: its events come by the bus."""

    async def end(self, deadline: float) -> None:  # noqa: ARG002 - its events end with the bus
        await self.declared.outward.leave()


class Incomer:
    """This process as one that takes for a relay: a source, and a taker for each part that it holds."""

    def __init__(self, declared: RelayIn, of: Declared, engine: Engine, holder: str) -> None:
        self.declared = declared
        self.standing = Standing(declared.name, of.telemetry)
        self.direction = "in"
        self._of = of
        self._engine = engine
        self._holder = holder
        self._source: Source | None = None
        self._takers: dict[int, Taker] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._asked_at: float | None = None
        self._asking: asyncio.Task[int] | None = None

    @property
    def is_idle(self) -> bool:
        return self._asked_at is not None and all(each.is_idle for each in self._takers.values())

    async def look(self) -> None:
        """Take what is free, give back what is too much, and have everything held read.

        Raises:
            FencerowError: a taker met an error that is no trouble of the database.
        """
        await self._ask_parts()
        self._collect()
        held = await self._engine.arun(parts.hold_parts(self.declared.name, holder=self._holder))
        if not held.known:
            self._asked_at = None  # the relay was removed: it begins anew
        fences = {lease.part: lease.fence for lease in held.leases}
        for part, taker in self._takers.items():
            if fences.get(part) != taker.lease.fence:
                taker.stop()  # it was taken over or moved: what it stores is refused
        surplus = sorted(fences, key=self._takers.__contains__)[: held.surplus]
        for lease in held.leases:
            if lease.part not in self._takers and lease.part not in surplus:
                self._begin(lease)
        if surplus:
            await self._give_back(surplus)

    async def end(self, deadline: float) -> None:
        """Let what is under way end until then, and give everything back."""
        await self._stopped(list(self._takers), deadline)
        if self._asking is not None:
            self._asking.cancel()
        await self._engine.arun(parts.give_parts(self.declared.name, list(self._takers), holder=self._holder))
        if self._source is not None:
            await self._source.close()

    async def _ask_parts(self) -> None:
        """How many parts the broker has: asked beside, so that one that is away holds up nobody else's lease."""
        if self._asking is not None and self._asking.done():
            asked, self._asking = self._asking, None
            try:
                await self._engine.arun(parts.make_parts(self.declared.name, asked.result()))
                self._asked_at = time.monotonic()
                self.standing.went_well()
            except BrokerAway as error:
                self.standing.met(error)
        is_due = self._asked_at is None or time.monotonic() > self._asked_at + PARTS_S
        if self._asking is None and is_due and not self.standing.wait_s:
            self._asking = asyncio.create_task(self._opened().parts(), name="fencerow-relay-parts")
            await asyncio.wait({self._asking}, timeout=SOON_S)
            if self._asking.done():
                await self._ask_parts()

    def _opened(self) -> Source:
        if self._source is None:
            self._source = self.declared.place.source(self.declared.name)
        return self._source

    def _begin(self, lease: parts.PartLease) -> None:
        taker = Taker(
            self._engine,
            self._opened(),
            self.declared.maker,
            lease,
            self.standing,
            self._of.telemetry,
            at_end=self.declared.at_end,
            when_gone=self.declared.when_gone,
        )
        self._takers[lease.part] = taker
        self._tasks[lease.part] = asyncio.create_task(
            taker.run(), name=f"fencerow-relay-{lease.relay}-{lease.part}"
        )

    def _collect(self) -> None:
        """Forget takers that have ended; an error of ours is the chore's."""
        for part, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[part], self._takers[part]
                if not task.cancelled():
                    task.result()

    async def _give_back(self, surplus: Sequence[int]) -> None:
        await self._stopped(surplus, time.monotonic() + LOOK_S)
        self._collect()
        given = [part for part in surplus if part not in self._takers]
        await self._engine.arun(parts.give_parts(self.declared.name, given, holder=self._holder))

    async def _stopped(self, some: Sequence[int], deadline: float) -> None:
        for part in some:
            if part in self._takers:
                self._takers[part].stop()
        tasks = [self._tasks[part] for part in some if part in self._tasks]
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=max(0.0, deadline - time.monotonic()))
            for task in left:
                task.cancel()


class RelayChore(Chore):
    """Runs the relays of an app in one worker."""

    name = "relay"

    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self._holder = new_id()
        self._running: list[Outgoer | Incomer] | None = None
        self._told: set[str] = set()  # relays that this worker has made known
        self._renew_at = 0.0
        self._ended = False
        self._turn = asyncio.Lock()

    def for_worker(self) -> Chore:
        return RelayChore(self.declared)

    def told(self) -> str:
        """The relays, with where each leads."""
        out = [f"{each.name} to {each.place.told}" for each in self.declared.out]
        inward = [f"{each.name} of {each.place.told}" for each in self.declared.inward]
        return f"relays {', '.join((*out, *inward))}"

    @property
    def is_idle(self) -> bool:
        return self._running is not None and all(each.is_idle for each in self._running)

    async def tick(self) -> float:
        async with self._turn:
            if not self._ended:
                await self._look()
        return LOOK_S

    async def _look(self) -> None:
        engine = self.declared.engine()
        running = self._started(engine)
        known = await engine.arun(relays.known())
        renew, met = time.monotonic() >= self._renew_at, dict[str, Exception]()
        for each in running:
            name = each.declared.name
            each.standing.paused = known.get(name, False)
            try:
                if name not in known or name not in self._told:
                    await self._know(engine, each)
                elif renew or each.standing.trouble != each.standing.stated:
                    await self._renew(engine, each)
                await each.look()
            except Exception as error:  # one relay holds up no other one's lease
                met[name] = error
        if renew:
            self._renew_at = time.monotonic() + self.declared.config.renew_s / 2
        if met:
            raise _told_but_one(met)

    def _started(self, engine: Engine) -> list[Outgoer | Incomer]:
        if self._running is None:
            inward = [Incomer(each, self.declared, engine, self._holder) for each in self.declared.inward]
            self._running = [*map(Outgoer, self.declared.out), *inward]
        return self._running

    async def _know(self, engine: Engine, each: Outgoer | Incomer) -> None:
        """Make the relay known, where it is now: when this worker begins, and after somebody removed it."""
        name = each.declared.name
        await engine.arun(relays.know(name, each.direction, each.declared.place.told))
        await self._renew(engine, each)
        self._told.add(name)

    async def _renew(self, engine: Engine, each: Outgoer | Incomer) -> None:
        name, trouble = each.declared.name, each.standing.trouble
        await engine.arun(
            relays.renew(
                name,
                holder=self._holder,
                name=f"{platform.node()}-{os.getpid()}",
                lease_s=self.declared.config.lease_s,
                trouble=trouble,
            )
        )
        each.standing.stated = trouble

    async def end(self, within_s: float) -> None:
        async with self._turn:
            self._ended = True
            deadline, running = time.monotonic() + within_s, self._running or []
            ends = await asyncio.gather(*(each.end(deadline) for each in running), return_exceptions=True)
            for each, error in zip(running, ends, strict=True):
                if isinstance(error, FencerowError):
                    log.warning("the relay %s was left without saying so: %s", each.declared.name, error)
                elif isinstance(error, BaseException):
                    raise error
                await self.declared.engine().arun(relays.leave(each.declared.name, holder=self._holder))


def _told_but_one(met: Mapping[str, Exception]) -> Exception:
    """What several relays met: one is the chore's to tell, an error of ours before trouble of the database, and the log
    has the others."""
    chosen = next((name for name, error in met.items() if not is_trouble(error)), next(iter(met)))
    for name, error in met.items():
        if name != chosen:
            log.error("the relay %s has met an error, too: %s", name, said_of(error), exc_info=error)
    return met[chosen]


def declared_by(app: JobsApp) -> Declared:
    """The relays of an app; the first time the chore that runs them is added to it."""
    chore = next((each for each in app.chores if isinstance(each, RelayChore)), None)
    if chore is None:
        chore = RelayChore(Declared(lambda: app.engine, app.config, app.telemetry))
        app.add_chore(chore)
    return chore.declared
