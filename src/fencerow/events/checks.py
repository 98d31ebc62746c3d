"""What the event bus suffers from: groups that nobody reads, that are far behind, or that parked events."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, fail, info, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.events.groups import groups
from fencerow.events.lag import Lag, lags
from fencerow.events.settings import EventSettings

LATE_S = 300.0
UNPLACED_S = 60.0  # the longest that one stopped process can keep others from giving places is a part of this


def examine_events(engine: Engine, config: CoreConfig) -> Iterator[Finding]:
    """Each group of readers; nothing is said where there is none."""
    for known in engine.run(groups()):
        if not known.topics:
            yield fail(
                "event group",
                f"which topics group {known.name} reads cannot be read, as its row was changed by hand",
                "start a worker with its consumer: it writes them again",
            )
    found = engine.run(lags())
    for group in found:
        yield from _group(group, EventSettings.of(config))
    if found:
        read = amount(len(found), "group reads", "groups read")
        yield ok("events", f"{read} the log up to position {found[0].head}")


def _group(group: Lag, kept: EventSettings) -> Iterator[Finding]:
    if group.unplaced_s > UNPLACED_S:
        yield fail(
            "unplaced events",
            f"{amount(group.unplaced, 'event')} for group {group.group} without a position, the first for "
            f"{group.unplaced_s:.0f} s, so nobody can read them",
            "run a worker (each one gives positions); if one runs, its log says why it does not",
        )
    if group.alarmed_at_us is not None:
        yield fail(
            "unread events",
            f"group {group.group} has not read events of {group.seconds:.0f} s ago; retention removes them unread "
            f"after {kept.retention_unread_events_s:.0f} s",
            f"run a worker with its consumer, or `fencerow events remove {group.group}`",
        )
    elif group.events and not group.readers:
        yield warn(
            "unread events",
            f"group {group.group} has {amount(group.events, 'event')} to read, and no reader is alive",
            "run a worker with its consumer",
        )
    elif group.seconds > LATE_S:
        yield warn(
            "event lag",
            f"group {group.group} is {amount(group.events, 'event')} and {group.seconds:.0f} s behind",
            "run more workers, use more partitions in a new group, or make the handler faster",
        )
    if group.parked:
        yield warn(
            "parked events",
            f"group {group.group} has parked {amount(group.parked, 'event')}",
            f"`fencerow events parked {group.group}`, then redrive or discard them",
        )
    if group.waiting:
        yield info("events to try again", f"group {group.group} tries {amount(group.waiting, 'event')} again")
