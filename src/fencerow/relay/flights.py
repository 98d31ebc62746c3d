"""The events of a page on their way to a broker: several at a time, as far as no failure could change their order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fencerow.db.errors.base import FencerowError
from fencerow.events.event import Event
from fencerow.relay.broker import Outgoing, Sender
from fencerow.relay.errors import BrokerAway, BrokerRefused

ALONE_MAX: Final = 10_000
Results = Mapping[int, Exception | None]  # by the events' positions
Packer = Callable[[Event], Outgoing]


@dataclass
class Open:
    """The sender of one event loop, how many workers there use it, and what is under way.

    `alone`: positions of events whose flight nobody answered. They are tried one by one, because one of them may be
    what breaks the connection.
    """

    sender: Sender | None = None
    users: int = 0
    alone: set[int] = field(default_factory=set)
    flights: set[asyncio.Task[Results]] = field(default_factory=set)

    def sent_alone(self, positions: Sequence[int]) -> None:
        """Let these be tried one by one."""
        if len(positions) > 1:
            if len(self.alone) > ALONE_MAX:
                self.alone.clear()
            self.alone.update(positions)


class Flights:
    """One page. A flight takes off when its first event is handed over, so an event that must wait holds up what is
    behind it.

    A sender that takes several as a whole gets all of them at once. Any other gets at most one of each key: when one of
    them fails, what is behind it in its key is not on its way. After a failure the rest of the page goes one by one.
    """

    def __init__(self, events: Sequence[Event], pack: Packer, *, in_one_order: bool) -> None:
        self._events = events
        self._pack = pack
        self._in_one_order = in_one_order
        self._begun: dict[int, asyncio.Task[Results]] = {}
        self._alone = False

    def has_begun(self, position: int) -> bool:
        """Whether this event is under way, or was."""
        return position in self._begun

    async def result(self, event: Event, opened: Open, sender: Sender) -> Exception | None:
        """What became of an event; None: the broker has it."""
        flight = self._begun.get(event.position) or self._begin(event, opened, sender)
        try:
            results = await asyncio.shield(flight)
        except asyncio.CancelledError:
            self._alone = True
            raise
        error = results[event.position]
        self._alone = self._alone or any(results.values())
        if isinstance(error, BrokerAway):
            opened.sent_alone(list(results))
        if error is None or isinstance(error, BrokerAway | BrokerRefused) or len(results) == 1:
            return error
        # Nothing behind it in its key was taken: alone it shows whether it is this one that the broker does not take.
        for position, failed in results.items():
            if failed is not None and not isinstance(failed, BrokerRefused):
                self._begun.pop(position, None)
        return await self.result(event, opened, sender)

    def _begin(self, event: Event, opened: Open, sender: Sender) -> asyncio.Task[Results]:
        several = self._several(event, opened, sender)
        flight = asyncio.create_task(_sent(sender, several), name="fencerow-relay-flight")
        opened.flights.add(flight)
        flight.add_done_callback(opened.flights.discard)
        opened.alone.difference_update(several)
        self._begun.update(dict.fromkeys(several, flight))
        return flight

    def _several(self, event: Event, opened: Open, sender: Sender) -> Mapping[int, Outgoing]:
        """This event, and what may fly with it."""
        found = {event.position: self._pack(event)}
        goes_alone = self._alone or event.position in opened.alone
        if goes_alone or (self._in_one_order and not sender.takes_as_a_whole):
            return found
        keys = {event.key}
        for each in self._events:
            if each.position <= event.position or self.has_begun(each.position):
                continue
            if each.position in opened.alone:
                break
            if not sender.takes_as_a_whole and each.key is not None and each.key in keys:
                continue
            try:
                found[each.position] = self._pack(each)
            except FencerowError:  # it cannot be read: its own turn will tell
                break
            keys.add(each.key)
        return found


async def _sent(sender: Sender, several: Mapping[int, Outgoing]) -> Results:
    try:
        told: Sequence[Exception | None] = await sender.send(list(several.values()))
    except Exception as error:
        told = [error] * len(several)
    return dict(zip(several, told, strict=True))
