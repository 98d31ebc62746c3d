"""The settings of the doctor, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number, text


@dataclass(frozen=True, kw_only=True)
class HorizonSettings(Settings):
    """Which sessions may be ended that hold back the horizon. By default none is."""

    horizon_end_after_s: float | None = number(
        None,
        60.0,
        30 * 86_400.0,
        "On PostgreSQL workers end a session whose transaction has held back the horizon for so long, if "
        "`horizon_end_allow` names it. By default none is ended.",
    )
    horizon_end_allow: str | None = text(
        None,
        "Which sessions those are: patterns of application names, with commas, such as `report-*`; "
        "`role:NAME` is all of a role. By default none.",
    )
