"""Reads one part of what comes in: messages are stored with the position behind them, in one transaction."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import fencerow.relay.parts as parts
from fencerow.core.errors import FencerowError
from fencerow.core.store.hints import hints_of
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.db.errors.base import line_of
from fencerow.db.trouble import is_trouble
from fencerow.db.waits import set_within
from fencerow.events.outbox import WAKE_UP
from fencerow.relay.broker import BEGINNING, END, UNBEGUN, Message, Reading, Source
from fencerow.relay.errors import BrokerAway, PositionGone, RelayPartLost
from fencerow.relay.making import Maker, Reduced
from fencerow.relay.parts import Intake, PartLease
from fencerow.relay.standing import Standing

log = logging.getLogger("fencerow.relay")

Gone = Literal["earliest", "latest", "stop"]
BATCH: Final = 100
BATCH_BYTES: Final = 4 * 1024 * 1024
IDLE_S: Final = 1.0
SPECIAL: Final = (UNBEGUN, BEGINNING, END)


class Taker:
    """One part in the hands of this process. Ends when it is stopped, or when the part is lost."""

    def __init__(
        self,
        engine: Engine,
        source: Source,
        maker: Maker,
        lease: PartLease,
        standing: Standing,
        telemetry: Telemetry,
        *,
        at_end: bool,
        when_gone: Gone,
    ) -> None:
        self.lease = lease
        self._engine = engine
        self._source = source
        self._maker = maker
        self._standing = standing
        self._telemetry = telemetry
        self._at_end = at_end
        self._when_gone = when_gone
        self._stopping = asyncio.Event()
        self._noted: int | None = None
        self._noted_at = 0.0
        self.is_idle = False

    def stop(self) -> None:
        """End after what is under way."""
        self._stopping.set()

    async def run(self) -> None:
        """Read until stopped. What is not stored is read again by whoever reads next."""
        try:
            while not self._stopping.is_set():
                await self._one()
        except RelayPartLost as error:
            log.info("%s", error)
        except Exception as error:
            if not is_trouble(error):
                raise
            # What is certain is in the database: whoever reads next begins there.
            log.warning("part %d of the relay %s is left: %s", self.lease.part, self.lease.relay, error)

    async def _one(self) -> None:
        if self._standing.paused or self.lease.stopped:
            self.is_idle = True
            await self._wait(IDLE_S)
            return
        if (wait_s := self._standing.wait_s) > 0:
            await self._wait(wait_s)
            return
        try:
            await self._round()
        except BrokerAway as error:
            self.is_idle = False
            await self._wait(self._standing.met(error))
        except PositionGone as error:
            self._standing.went_well()
            await self._gone(error)

    async def _wait(self, within_s: float) -> None:
        await set_within(self._stopping, within_s)

    async def _round(self) -> None:
        if self.lease.position in SPECIAL:
            await self._begin()
        reading = await self._source.read(self.lease.part, self.lease.position, BATCH)
        self._standing.went_well()
        self.is_idle = not reading.messages
        if reading.messages and not self._standing.paused and not self._stopping.is_set():
            for few in _portions(reading.messages):
                await self._take(few, reading)
            await self._source.stored(self.lease.part, self.lease.position)
        elif not reading.messages:
            await self._note(reading.lag)

    async def _begin(self) -> None:
        at_end = self.lease.position == END or (self.lease.position == UNBEGUN and self._at_end)
        position = await self._source.begin(self.lease.part, at_end=at_end)
        anew = self.lease.generation == 0
        generation = await self._engine.arun(parts.begin(self.lease, position, anew=anew))
        self._moved(position, generation)

    async def _take(self, messages: Sequence[Message], reading: Reading) -> None:
        reduced = [await self._maker.reduced(each, self.lease.generation) for each in messages]
        is_last = messages[-1] is reading.messages[-1]
        try:
            await self._store(reduced, reading.lag if is_last else None)
        except FencerowError as error:
            if isinstance(error, RelayPartLost) or is_trouble(error):
                raise
            await self._take_each(reduced, error)

    async def _take_each(self, reduced: Sequence[Reduced], error: FencerowError) -> None:
        """One of them cannot be stored: it alone goes to those that could not be read."""
        if len(reduced) == 1:
            await self._store([self._maker.unread(reduced[0].message, error)], None)
            return
        for each in reduced:
            try:
                await self._store([each], None)
            except FencerowError as own:
                if isinstance(own, RelayPartLost) or is_trouble(own):
                    raise
                await self._take_each([each], own)

    async def _store(self, reduced: Sequence[Reduced], lag: int | None) -> None:
        position = reduced[-1].message.after
        intake = Intake(
            position,
            len(reduced),
            [job for each in reduced for job in each.submissions],
            [event for each in reduced for event in each.events],
            [each.unread for each in reduced if each.unread is not None],
            lag,
        )
        await self._engine.arun(parts.take(self.lease, intake))
        self._moved(position, self.lease.generation)
        self._tell(intake)

    def _tell(self, intake: Intake) -> None:
        hints = hints_of(each.job for each in intake.submissions)
        self._engine.wake([*hints, WAKE_UP] if intake.events else hints)
        counters, unread = self._telemetry.counters, len(intake.unread)
        counters.add("relay_taken", intake.count - unread)
        self._telemetry.emit(
            "relay_taken", relay=self.lease.relay, count=intake.count - unread, unread=unread
        )
        for each in intake.unread:
            log.error(
                "the relay %s cannot read the message %s of part %d: %s; `fencerow relay unread %s`",
                self.lease.relay,
                each.position,
                self.lease.part,
                each.error,
                self.lease.relay,
            )

    async def _note(self, lag: int | None) -> None:
        if lag is None or lag == self._noted or time.monotonic() < self._noted_at + IDLE_S:
            return
        await self._engine.arun(parts.note_lag(self.lease, lag))
        self._noted, self._noted_at = lag, time.monotonic()

    async def _gone(self, error: PositionGone) -> None:
        """Tell it loudly, count it, and go on as the relay says."""
        log.error("the relay %s: %s", self.lease.relay, error)
        self._telemetry.emit(
            "relay_gone",
            relay=self.lease.relay,
            part=self.lease.part,
            count=error.gone,
            policy=self._when_gone,
        )
        if self._when_gone == "stop":
            await self._engine.arun(parts.stop(self.lease, line_of(error)))
            self.lease = replace(self.lease, stopped=True)
            return
        position = error.earliest if self._when_gone == "earliest" else error.latest
        generation = await self._engine.arun(
            parts.begin(self.lease, position, anew=error.anew, gone=error.gone or 0)
        )
        self._moved(position, generation)

    def _moved(self, position: str, generation: int) -> None:
        self.lease = replace(self.lease, position=position, generation=generation)
        self._noted = None


def _portions(messages: Sequence[Message]) -> Sequence[Sequence[Message]]:
    """What may be stored in one transaction, by its bytes."""
    found: list[list[Message]] = [[]]
    size = 0
    for each in messages:
        if found[-1] and size + len(each.data) > BATCH_BYTES:
            found.append([])
            size = 0
        found[-1].append(each)
        size += len(each.data)
    return found
