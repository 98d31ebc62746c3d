"""The settings of retention, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number
from fencerow.core.model.defaults import DAY_S


@dataclass(frozen=True, kw_only=True)
class RetentionSettings(Settings):
    """How long finished jobs are kept."""

    retention_succeeded_s: float = number(7 * DAY_S, 0.0, 3650 * DAY_S, "How long succeeded jobs are kept.")
    retention_failed_s: float = number(90 * DAY_S, 0.0, 3650 * DAY_S, "How long failed jobs are kept.")
    retention_cancelled_s: float = number(30 * DAY_S, 0.0, 3650 * DAY_S, "How long cancelled jobs are kept.")
    retention_period_s: float = number(
        DAY_S,
        60.0,
        3650 * DAY_S,
        "On PostgreSQL finished jobs are removed by whole tables, each for at least this time, not by rows.",
    )
    retention_ephemeral_s: float = number(
        DAY_S,
        60.0,
        3650 * DAY_S,
        "How long a repeated submit finds an ephemeral job that succeeded.",
    )
    retention_count_max: int | None = number(
        None, 0, 10**12, "How many finished jobs are kept per state; by default no bound."
    )
