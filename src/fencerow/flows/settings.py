"""The settings of flows, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number, text
from fencerow.core.model.defaults import DAY_S


@dataclass(frozen=True, kw_only=True)
class FlowSettings(Settings):
    """Who wakes the jobs of flows, and how long flows are kept."""

    flows: str = text(
        "on",
        "`off`: the workers of this process wake no jobs of flows; others do.",
        "on",
        "off",
    )
    flow_retention_s: float = number(
        7 * DAY_S,
        60.0,
        3650 * DAY_S,
        "How long a flow is kept after its end, with the results that its jobs read. Its jobs have one of their own.",
    )
