"""The settings of large payloads, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number, text
from fencerow.core.model.defaults import DAY_S


@dataclass(frozen=True, kw_only=True)
class PayloadSettings(Settings):
    """Where large payloads are kept."""

    outside_store: str | None = text(
        None,
        "Where large arguments and results are kept outside the database: `file:///folder` or `s3://bucket/prefix`, "
        "for this database alone.",
    )
    outside_bytes_min: int = number(
        65_536, 1_024, 64 * 1024 * 1024, "From this size on a payload is kept outside the database."
    )
    outside_timeout_s: float = number(
        60.0,
        0.1,
        3600.0,
        "How long anybody waits for the store outside: to keep a payload, or to read one. Then it counts as away.",
    )
    outside_orphan_s: float = number(
        DAY_S,
        3600.0,
        3650 * DAY_S,
        "How long what no job refers to stays in the store outside: longer than any submit may take.",
    )
