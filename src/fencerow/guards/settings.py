"""The settings of the guards, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number
from fencerow.core.model.defaults import DAY_S


@dataclass(frozen=True, kw_only=True)
class GuardSettings(Settings):
    """When a mutex may be taken over, and how long a source is remembered."""

    # Several times the longest pause of a healthy process, and renewed four times within it.
    mutex_stale_s: float = number(
        30.0, 1.0, 86_400.0, "Others may take a mutex that was not renewed for so long."
    )

    retention_sources_s: float = number(
        30 * DAY_S,
        60.0,
        3650 * DAY_S,
        "How long replace_for remembers a source that was emptied or never written.",
    )
