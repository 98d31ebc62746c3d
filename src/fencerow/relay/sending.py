"""Sends the events of a group of the bus to a broker, one partition in order; who waits holds its partition."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from fencerow.core.telemetry import Telemetry
from fencerow.events.event import Event
from fencerow.events.holding import HoldPartition
from fencerow.relay.broker import Outgoing, Place, Sender
from fencerow.relay.errors import BrokerAway
from fencerow.relay.flights import Flights, Open
from fencerow.relay.standing import Standing

ENDS: Final = "job."
PAUSED_S: Final = 1.0


class Outward:
    """The handler of a relay's group. Each event loop has a sender of its own, while a worker runs there.

    `in_one_order`: the group has one partition, so all its events go out in the order of the log.
    """

    def __init__(
        self, relay: str, place: Place, standing: Standing, telemetry: Telemetry, *, in_one_order: bool
    ) -> None:
        self._relay = relay
        self._place = place
        self._standing = standing
        self._telemetry = telemetry
        self._in_one_order = in_one_order
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, Open] = WeakKeyDictionary()

    async def send(self, event: Event) -> None:
        """One event, as `OutwardPage.hand`."""
        await self.page([event]).hand(event)

    def page(self, events: Sequence[Event]) -> OutwardPage:
        """The next events of a partition, to be sent several at a time."""
        return OutwardPage(self, Flights(events, outgoing, in_one_order=self._in_one_order))

    def opened(self) -> tuple[Open, Sender]:
        """What sends on this event loop.

        Raises:
            HoldPartition: no worker runs here.
        """
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is None or not opened.users:
            raise HoldPartition(PAUSED_S, "the relay rests")
        if opened.sender is None:
            opened.sender = self._place.sender()
        return opened, opened.sender

    def check_ready(self) -> None:
        """Whether something may be sent just now.

        Raises:
            HoldPartition: the relay rests, or the broker is away.
        """
        if self._standing.paused:
            raise HoldPartition(PAUSED_S, "the relay rests")
        if (wait_s := self._standing.wait_s) > 0:
            raise HoldPartition(wait_s, "the broker is away")

    def met(self, error: BrokerAway) -> HoldPartition:
        """The broker is away: how long the partition waits."""
        return HoldPartition(self._standing.met(error), error.what)

    def went_well(self) -> None:
        """The broker has an event."""
        self._standing.went_well()
        self._telemetry.counters.add("relay_sent")

    def enter(self) -> None:
        """A worker of this event loop begins."""
        loop = asyncio.get_running_loop()
        self._opened.setdefault(loop, Open()).users += 1

    async def leave(self) -> None:
        """It ends: the last one closes the connections."""
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is None:
            return
        opened.users -= 1
        if opened.users <= 0:
            del self._opened[asyncio.get_running_loop()]
            for flight in opened.flights:
                flight.cancel()
            if opened.sender is not None:
                await opened.sender.close()


class OutwardPage:
    """Some events of a partition on their way out: what a group of the bus calls a page."""

    def __init__(self, outward: Outward, flights: Flights) -> None:
        self._outward = outward
        self._flights = flights

    def has_begun(self, position: int) -> bool:
        """Whether this event is under way, or was."""
        return self._flights.has_begun(position)

    async def hand(self, event: Event) -> None:
        """One event; returns once the broker has it. So the cursor of the group never passes what it has not.

        Raises:
            HoldPartition: the relay rests, or the broker is away. BrokerRefused: it will never take this event.
        """
        opened, sender = self._outward.opened()
        if not self.has_begun(event.position):
            self._outward.check_ready()
        error = await self._flights.result(event, opened, sender)
        if isinstance(error, BrokerAway):
            raise self._outward.met(error) from error
        if error is not None:
            raise error
        self._outward.went_well()


def outgoing(event: Event) -> Outgoing:
    """The event as it travels: its data as they are, and in headers what a receiver knows it by."""
    headers: Mapping[str, str] = {
        **event.headers,
        "fencerow-id": str(event.id),
        "fencerow-position": str(event.position),
        "fencerow-topic": event.topic,
        "fencerow-kind": "job" if event.topic.startswith(ENDS) else "event",
        "fencerow-published-at": event.published_at.isoformat(),
        **({} if event.key is None else {"fencerow-key": event.key}),
    }
    return Outgoing(event.key, event.raw, headers)
