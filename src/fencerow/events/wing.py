"""Events, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine


def _purges(engine: Engine, config: CoreConfig, telemetry: Telemetry) -> Sequence[Purge]:
    from fencerow.events.retention import EventRetention

    return (EventRetention(engine, config, telemetry).round,)


def _checks() -> Sequence[Check]:
    from fencerow.events.checks import examine_events

    return (Check("events", examine_events),)


def _commands() -> Sequence[click.Command]:
    from fencerow.events.commands import events

    return (events,)


def _settings() -> type[Settings]:
    from fencerow.events.settings import EventSettings

    return EventSettings


CHANGES = (
    ChangeByHand("redrive_events", "event group", "parked events delivered again", "grp", shown=("places",)),
    ChangeByHand("discard_parked", "event group", "parked events discarded", "grp", shown=("places",)),
    ChangeByHand("replay_cursors", "event group", "replayed", "grp", shown=("after",)),
    ChangeByHand("remove_group", "event group", "removed", "grp", shown=()),
)
WING = Wing(
    "events",
    queries=("fencerow.events",),
    purges=_purges,
    used="events_used",
    checks=_checks,
    staying={"event_drainers": "a lease of a process that reads where it is"},
    declared=("event_groups", "event_cursors", "event_marks"),
    came=("place_moved_events",),
    changes=CHANGES,
    commands=_commands,
    settings=_settings,
)
