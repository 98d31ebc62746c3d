"""The settings of child processes, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ChildSettings(Settings):
    """Which child processes are kept warm, and when one is replaced."""

    child_idle_max: int = number(2, 0, 1_000, "How many idle child processes are kept for the next job.")
    child_idle_s: float = number(60.0, 0.0, 86_400.0, "How long an idle child process is kept.")
    child_jobs_max: int = number(100, 1, 1_000_000, "After so many jobs a child process is replaced.")
    child_resident_bytes_max: int = number(
        256 * MIB,
        MIB,
        1024 * 1024 * MIB,
        "A child process that keeps more memory than this after a job is replaced.",
    )
