"""`EventBus`: looks at groups and steers them, for operators and programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import fencerow.events.asides as asides
import fencerow.events.consumers as consumers
import fencerow.events.groups as groups
import fencerow.events.lag as lag
from fencerow.core.db.engine import Engine
from fencerow.core.db.place import Place, arun, run
from fencerow.core.db.run import Steps, execute, operation, text_or_none, whole
from fencerow.core.model.wakeup import Placed, encode
from fencerow.events.asides import Parked
from fencerow.events.consumers import Partition, Stored
from fencerow.events.errors import EventNotFound
from fencerow.events.groups import Group, Replayed, Start
from fencerow.events.lag import Lag, Retention

WAKE_UP = encode(Placed())


class EventBus:
    """The groups that read the events of a database: `EventBus(app).lag()`.

    Every verb has an async twin with an `a` before its name.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def groups(self) -> list[Group]:
        """All groups, whether anybody reads for them or not: their topics, partitions and generation."""
        return run(self._place, groups.groups())

    async def agroups(self) -> list[Group]:
        return await arun(self._place, groups.groups())

    def partitions(self, group: str) -> list[Partition]:
        """The partitions of a group: who reads each, whether that reader is alive, and how far it has come.

        Empty where there is no such group.
        """
        return run(self._place, consumers.partitions(group))

    async def apartitions(self, group: str) -> list[Partition]:
        return await arun(self._place, consumers.partitions(group))

    def lag(self, group: str | None = None) -> list[Lag]:
        """How far the groups are behind, or this one, in events and in seconds; empty where there is no such group.

        It stops counting at 10,000 events of a partition, so it may be asked often.
        """
        return run(self._place, lag.lags(group))

    async def alag(self, group: str | None = None) -> list[Lag]:
        return await arun(self._place, lag.lags(group))

    def retention_estimate(self, keep: int | None = None) -> Retention:
        """How fast the log grows, by its last 10,000 events, and how old its oldest one is.

        With `keep` also for how many seconds so many events last at that rate: what to give `retention_events_max`.
        """
        return run(self._place, lag.retention_estimate(keep=keep))

    async def aretention_estimate(self, keep: int | None = None) -> Retention:
        return await arun(self._place, lag.retention_estimate(keep=keep))

    def parked(self, group: str | None = None, *, limit: int = 100) -> list[Parked]:
        """Up to `limit` events that a group, or any, was not able to handle: those that were parked first.

        Each has its place, for `redrive`, and its last error.
        """
        return run(self._place, asides.parked(group, limit=limit))

    async def aparked(self, group: str | None = None, *, limit: int = 100) -> list[Parked]:
        return await arun(self._place, asides.parked(group, limit=limit))

    def redrive(self, group: str, places: Sequence[int] | None = None) -> list[int]:
        """Let parked events be delivered again with a new budget, all of a group or those at these places.

        Returns the places that it found parked. Later events of the same key have gone on meanwhile, so these come
        after them. May be repeated.

        Raises:
            UnknownGroup: there is no such group.
        """
        return self._told(run(self._place, asides.redrive(group, places)))

    async def aredrive(self, group: str, places: Sequence[int] | None = None) -> list[int]:
        return self._told(await arun(self._place, asides.redrive(group, places)))

    def replay(self, group: str, start: str | int | datetime) -> Replayed:
        """Let a group read again from a place, a time or the "beginning" on, as far as retention left it.

        Raises:
            UnknownGroup: there is no such group.
            InvalidInput: `start` is none of these.
        """
        found = run(self._place, groups.replay(group, Start.of(start)))
        told(self._place.engine)
        return found

    async def areplay(self, group: str, start: str | int | datetime) -> Replayed:
        found = await arun(self._place, groups.replay(group, Start.of(start)))
        told(self._place.engine)
        return found

    def remove(self, group: str) -> None:
        """Forget a group that nobody reads for any more: its place, what it put aside and parked.

        Raises:
            UnknownGroup: there is no such group.
        """
        run(self._place, groups.remove_group(group))

    async def aremove(self, group: str) -> None:
        await arun(self._place, groups.remove_group(group))

    def show(self, *, position: int | None = None, event_id: int | None = None) -> Stored:
        """One event, by its place in the log or its id.

        Raises:
            EventNotFound: there is none.
        """
        return run(self._place, show(position, event_id))

    async def ashow(self, *, position: int | None = None, event_id: int | None = None) -> Stored:
        return await arun(self._place, show(position, event_id))

    def _told(self, places: list[int]) -> list[int]:
        if places:
            told(self._place.engine)
        return places


def told(engine: Engine) -> None:
    """Have the readers look at once."""
    engine.wake([WAKE_UP])


@operation(alone=True, repeatable=True, writes="")
def show(position: int | None, event_id: int | None) -> Steps[Stored]:
    """One event."""
    rows = yield from execute("show_event", seq=position, event_id=event_id)
    if not rows:
        named = f"at place {position}" if position is not None else f"with the id {event_id}"
        raise EventNotFound(
            f"there is no event {named}",
            "it was never published, has no place yet, or retention has removed it",
            "`fencerow events lag` shows how far the log goes",
        )
    event_id_, seq, topic, key, data, headers, published_at = rows[0]
    return Stored(
        whole(event_id_),
        0 if seq is None else whole(seq),
        str(topic),
        text_or_none(key),
        str(data),
        text_or_none(headers),
        whole(published_at),
    )
