"""The settings of metrics, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number


@dataclass(frozen=True, kw_only=True)
class MetricsSettings(Settings):
    """How much metrics may cost."""

    metrics_look_s: float = number(
        10.0,
        1.0,
        3600.0,
        "For how long one look at the database serves all who ask for the metrics of a process.",
    )
    metrics_patience_s: float = number(
        2.0,
        0.1,
        60.0,
        "How long an answer with metrics waits for that look; after it the database's metrics are left out.",
    )
    metrics_jobs_max: int = number(
        10_000,
        100,
        10**7,
        "How far the look counts the jobs of one lane; beyond it says that there are more.",
    )
    metrics_labels_max: int = number(
        500, 10, 100_000, "How many values a label may have; what is new then is counted as `other`."
    )
    metrics_last_scrape_s: float = number(
        0.0,
        0.0,
        300.0,
        "How long a worker that has ended waits for one more scrape, so that its last counts are not lost.",
    )
