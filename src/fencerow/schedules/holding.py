"""Maintenance windows at pick-up: a job that is claimed inside a window of its schedule goes back to its queue until
the window ends. No failure and no snooze is spent.

The windows travel in a header of the job, so no worker asks the database. They are those of the day it was submitted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from fencerow.calendar.errors import UnknownZone
from fencerow.core.errors import FencerowError
from fencerow.core.model.job import moment
from fencerow.core.model.outcome import Released
from fencerow.schedules.windows import MaintenanceWindows

log = logging.getLogger("fencerow.worker")

WINDOWS_HEADER = "fencerow-maintenance-windows"
NO_ZONE_S = 60.0  # until a worker that knows the zone may have it


def windows_header(windows: MaintenanceWindows) -> dict[str, str]:
    """What a job carries that these windows keep from starting."""
    if not windows.windows:
        return {}
    return {WINDOWS_HEADER: msgspec.json.encode(windows.document()).decode()}


def hold(headers: Mapping[str, str], now_us: int) -> Released | None:
    """What becomes of a claimed job whose window is closed now; None: it may start.

    A worker that does not know a window's zone starts nothing in it: it leaves the job to others.
    """
    text = headers.get(WINDOWS_HEADER)
    if text is None:
        return None
    windows = _windows(text)
    if isinstance(windows, str):
        return Released(windows, NO_ZONE_S)
    opens_us = windows.opens_after(now_us)
    if opens_us <= now_us:
        return None
    until = moment(opens_us).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Released(f"maintenance window until {until}", (opens_us - now_us) / 1e6)


@lru_cache(maxsize=1024)
def _windows(text: str) -> MaintenanceWindows | str:
    """The windows of a header, or why this worker cannot know them. One that nobody could read keeps nobody."""
    try:
        return MaintenanceWindows.parse(msgspec.json.decode(text, type=list[str]))
    except UnknownZone as error:
        log.warning("jobs in maintenance windows are left to other workers: %s", error)
        return f"{error.code} {error.what}"
    except (msgspec.DecodeError, FencerowError) as error:
        log.warning("the header %s of a job cannot be read and is ignored: %s", WINDOWS_HEADER, error)
        return MaintenanceWindows()
