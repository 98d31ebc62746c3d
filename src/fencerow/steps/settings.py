"""The settings of durable steps, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class StepSettings(Settings):
    """How much a job remembers."""

    steps_max: int = number(
        1_000,
        1,
        100_000,
        "So many steps, sleeps and waits does a job remember; each attempt reads all of them.",
    )
    steps_bytes_max: int = number(
        4 * MIB, KIB, 64 * MIB, "So many bytes may the results of a job's steps have together."
    )
