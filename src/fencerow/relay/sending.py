"""Sends the events of a group of the bus to a broker, one partition in order; who waits holds its partition."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from fencerow.core.telemetry import Telemetry
from fencerow.events.event import Event
from fencerow.events.holding import HoldPartition
from fencerow.relay.broker import Outgoing, Place, Sender
from fencerow.relay.errors import BrokerAway
from fencerow.relay.standing import Standing

ENDS: Final = "job."
PAUSED_S: Final = 1.0


@dataclass
class _Open:
    """The sender of one event loop, and how many workers there use it."""

    sender: Sender | None = None
    users: int = 0


class Outward:
    """The handler of a relay's group. Each event loop has a sender of its own, while a worker runs there."""

    def __init__(self, relay: str, place: Place, standing: Standing, telemetry: Telemetry) -> None:
        self._relay = relay
        self._place = place
        self._standing = standing
        self._telemetry = telemetry
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open] = WeakKeyDictionary()

    async def send(self, event: Event) -> None:
        """One event; returns once the broker has it. So the cursor of the group never passes what it has not.

        Raises:
            HoldPartition: the relay rests, or the broker is away. BrokerRefused: it will never take this event.
        """
        opened = self._opened.get(asyncio.get_running_loop())
        if self._standing.paused or opened is None or not opened.users:
            raise HoldPartition(PAUSED_S, "the relay rests")
        if (wait_s := self._standing.wait_s) > 0:
            raise HoldPartition(wait_s, "the broker is away")
        if opened.sender is None:
            opened.sender = self._place.sender()
        try:
            await opened.sender.send(outgoing(event))
        except BrokerAway as error:
            raise HoldPartition(self._standing.met(error), error.what) from error
        self._standing.went_well()
        self._telemetry.counters.add("relay_sent")

    def enter(self) -> None:
        """A worker of this event loop begins."""
        loop = asyncio.get_running_loop()
        self._opened.setdefault(loop, _Open()).users += 1

    async def leave(self) -> None:
        """It ends: the last one closes the connections."""
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is None:
            return
        opened.users -= 1
        if opened.users <= 0:
            del self._opened[asyncio.get_running_loop()]
            if opened.sender is not None:
                await opened.sender.close()


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
