"""What every worker of an app does for schedules, loaded once there is one: declared here, or made by anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fencerow.core.background.dormant import Dormant
from fencerow.core.chore import Chore
from fencerow.core.client.base import ClientBase
from fencerow.core.config import CoreConfig
from fencerow.core.model.wakeup import Rescheduled
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.schedules.settings import COMPARE_S, ScheduleSettings

if TYPE_CHECKING:
    from fencerow.schedules.appside import Program
    from fencerow.schedules.chores import ScheduleSite

USED = "schedules_used"


def schedule_chores(
    client: Callable[[], ClientBase],
    config: CoreConfig,
    telemetry: Telemetry,
    program: Callable[[], Program],
    declares: Callable[[], bool],
) -> list[Chore]:
    """The chores; none, where the setting `schedules` is off. `declares`: whether the program declares a schedule."""
    settings = ScheduleSettings.of(config)
    if settings.schedules != "on":
        return []

    def site() -> ScheduleSite:
        from fencerow.schedules.chores import ScheduleSite

        return ScheduleSite(client, settings, telemetry, program)

    def ticks() -> Chore:
        from fencerow.schedules.chores import TickChore

        return TickChore(site())

    def declared() -> Chore:
        from fencerow.schedules.chores import DeclaredChore

        return DeclaredChore(site())

    def engine() -> Engine:
        return client().engine

    return [
        Dormant(
            "schedules",
            engine,
            USED,
            ticks,
            every_s=settings.schedules_poll_s,
            jitter=0.0,
            hears=(Rescheduled,),
        ),
        Dormant("declared schedules", engine, USED, declared, every_s=COMPARE_S, wanted=declares),
    ]
