"""Schedules: jobs that are submitted when their time has come, by whichever worker sees it first.

The guide: docs/guide/schedules.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.schedules.listing import Entity
    from fencerow.schedules.options import ScheduleOptions
    from fencerow.schedules.shown import ScheduleRecord
else:
    __getattr__ = lazily(
        __name__,
        {
            "Entity": "fencerow.schedules.listing",
            "ScheduleOptions": "fencerow.schedules.options",
            "ScheduleRecord": "fencerow.schedules.shown",
        },
    )

__all__ = ["Entity", "ScheduleOptions", "ScheduleRecord"]
