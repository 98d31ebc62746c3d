"""The settings of one process: those of the core, with those of the wings."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import CoreConfig
from fencerow.events.settings import EventSettings
from fencerow.guards.settings import GuardSettings
from fencerow.processes.settings import ChildSettings
from fencerow.retention.settings import RetentionSettings
from fencerow.schedules.settings import ScheduleSettings


@dataclass(frozen=True, kw_only=True, repr=False)
class Config(ScheduleSettings, GuardSettings, EventSettings, RetentionSettings, ChildSettings, CoreConfig):
    """The settings of one process. Built directly or by `load`; either way every value is checked.

    Raises:
        ConfigError: a value has the wrong type, is out of range, or contradicts another one.
    """
