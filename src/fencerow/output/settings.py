"""The settings of the output of jobs, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number
from fencerow.core.model.defaults import DAY_S

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class OutputSettings(Settings):
    """How much a job may emit, how soon it is written, and how long it is kept."""

    output_chunk_bytes_max: int = number(
        64 * KIB, KIB, MIB, "The largest chunk that a job may emit, as JSON."
    )
    output_chunks_max: int = number(
        100_000, 1, 900_000, "So many chunks may a job emit, in all its attempts together."
    )
    output_bytes_max: int = number(
        16 * MIB, KIB, 1024 * MIB, "So many bytes may a job emit, in all its attempts together."
    )
    output_write_s: float = number(
        0.1,
        0.01,
        10.0,
        "So long chunks gather before they are written together; the first one is written at once.",
    )
    retention_output_s: float = number(
        DAY_S, 0.0, 3650 * DAY_S, "How long the output of a job is kept after its end, if the job is."
    )
