"""The settings of schedules, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number, text
from fencerow.core.model.defaults import DAY_S

COMPARE_S = 60.0  # how often a worker looks whether another release has been declared


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings(Settings):
    """Who makes the jobs of schedules, and what is kept of them."""

    schedules: str = text(
        "on",
        "`off`: the workers of this process make no ticks and reconcile nothing; others do.",
        "on",
        "off",
    )
    schedules_owner: str = text(
        "app",
        "The program whose declared schedules are reconciled. Programs that share tables need one name each.",
    )
    schedules_version: int = number(
        1,
        1,
        2**53,
        "Of the declared schedules: raise it with each change, so that an older process takes nothing back.",
    )
    schedules_poll_s: float = number(
        5.0, 0.05, 300.0, "How often a worker looks for changed schedules, beside what it is told."
    )
    entities_refresh_s: float = number(
        60.0, 1.0, DAY_S, "How often the list of a schedule's entities is looked at, by one worker of all."
    )
    retention_ticks_s: float = number(
        7 * DAY_S,
        60.0,
        3650 * DAY_S,
        "How long it is kept which job each fire made; that of a job that has not ended is kept longer.",
    )
