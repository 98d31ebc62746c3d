"""The settings of events, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number
from fencerow.core.model.defaults import DAY_S


@dataclass(frozen=True, kw_only=True)
class EventSettings(Settings):
    """How long events are kept."""

    retention_events_s: float = number(
        7 * DAY_S, 0.0, 3650 * DAY_S, "How long events are kept that every group has read."
    )
    retention_unread_events_s: float = number(
        30 * DAY_S,
        60.0,
        3650 * DAY_S,
        "How long events are kept that a group has not read; half of this time raises an alarm for the group.",
    )
    retention_events_max: int | None = number(
        None,
        1,
        10**12,
        "How many events are kept; by default no bound. A group that is behind by half of it raises an alarm.",
    )
