"""`EventBus`: looks at groups and steers them, for operators and programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import fencerow.events.asides as asides
import fencerow.events.consumers as consumers
import fencerow.events.groups as groups
import fencerow.events.lag as lag
from fencerow.core.model.wakeup import Placed, encode
from fencerow.core.verb import averb, verb
from fencerow.db.engine import Engine
from fencerow.db.run import Procedure, Steps, WakeUp, as_int, ask, execute, operation, text_or_none
from fencerow.events.asides import Parked
from fencerow.events.consumers import Partition, Stored
from fencerow.events.errors import EventNotFound
from fencerow.events.groups import Group, GroupStart, Replayed
from fencerow.events.lag import Lag, Retention
from fencerow.located import LocatorVerbs

WAKE_UP = encode(Placed())


class EventBus(LocatorVerbs):
    """The groups that read the events of a database: `EventBus(app).lag()`.

    Every verb has an async twin with an `a` before its name.
    """

    @verb
    def groups(self) -> Procedure[list[Group]]:
        """All groups, whether anybody reads for them or not: their topics, partitions and generation."""
        return (yield from ask(groups.groups()))

    agroups = averb(groups)

    @verb
    def partitions(self, group: str) -> Procedure[list[Partition]]:
        """The partitions of a group: who reads each, whether that reader is alive, and how far it has come.

        Empty where there is no such group.
        """
        return (yield from ask(consumers.partitions(group)))

    apartitions = averb(partitions)

    @verb
    def lag(self, group: str | None = None) -> Procedure[list[Lag]]:
        """How far all groups are behind, or this one, in events and in seconds; empty if there is no such group.

        It stops counting at 10,000 events of a partition, so you may call it often.
        """
        return (yield from ask(lag.lags(group)))

    alag = averb(lag)

    @verb
    def retention_estimate(self, keep: int | None = None) -> Procedure[Retention]:
        """How fast the log grows, by its last 10,000 events, and how old its oldest one is.

        With `keep`, also how many seconds so many events last at that rate; use it to choose
        `retention_events_max`.
        """
        return (yield from ask(lag.retention_estimate(keep=keep)))

    aretention_estimate = averb(retention_estimate)

    @verb
    def parked(self, group: str | None = None, *, limit: int = 100) -> Procedure[list[Parked]]:
        """The parked events of a group, or of all groups: up to `limit`, those that were parked first.

        Each has its position, for `redrive`, and its last error.
        """
        return (yield from ask(asides.parked(group, limit=limit)))

    aparked = averb(parked)

    @verb
    def redrive(self, group: str, places: Sequence[int] | None = None) -> Procedure[list[int]]:
        """Deliver parked events again with a new budget: all of a group, or those at the positions `places`.

        Returns the positions of the parked events that it found. Later events of the same key were delivered
        meanwhile, so the redriven ones come after them. May be repeated.

        Raises:
            UnknownGroup: there is no such group.
        """
        redriven = yield from ask(asides.redrive(group, places))
        if redriven:
            yield WakeUp([WAKE_UP])
        return redriven

    aredrive = averb(redrive)

    @verb
    def replay(self, group: str, start: str | int | datetime) -> Procedure[Replayed]:
        """Let a group read again from a position, a time or the "beginning" on, as far as retention has kept
        the events.

        Raises:
            UnknownGroup: there is no such group.
            InvalidInput: `start` is none of these.
        """
        found = yield from ask(groups.replay(group, GroupStart.of(start)))
        yield WakeUp([WAKE_UP])
        return found

    areplay = averb(replay)

    @verb
    def remove(self, group: str) -> Procedure[None]:
        """Forget a group that nobody reads for any more: its position, and the events that it put aside or parked.

        Raises:
            UnknownGroup: there is no such group.
        """
        return (yield from ask(groups.remove_group(group)))

    aremove = averb(remove)

    @verb
    def show(self, *, position: int | None = None, event_id: int | None = None) -> Procedure[Stored]:
        """One event, by its position or its id.

        Raises:
            EventNotFound: there is none.
        """
        return (yield from ask(show(position, event_id)))

    ashow = averb(show)


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
            "it was never published, has no position yet, or retention has removed it",
            "`fencerow events lag` shows how far the log goes",
        )
    event_id_, seq, topic, key, data, headers, published_at = rows[0]
    return Stored(
        as_int(event_id_),
        0 if seq is None else as_int(seq),
        str(topic),
        text_or_none(key),
        str(data),
        text_or_none(headers),
        as_int(published_at),
    )
