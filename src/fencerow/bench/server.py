"""The CPU time of a private server and of the whole machine, read from the kernel's tables."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int | None) -> float | None:
    """Seconds that a server and its children have used, those that have ended included; None where unknown."""
    if pid is None or not PROC.is_dir():
        return None
    ticks = 0
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (times := _times(entry)) is not None:
            parent, own, reaped = times
            if int(entry.name) == pid:
                ticks += own + reaped
            elif parent == pid:
                ticks += own
    return ticks / TICKS_PER_S


def machine_s() -> float | None:
    """Seconds that all programs have used on all cores since the machine started; None where unknown."""
    try:
        first = (PROC / "stat").read_text().split("\n", 1)[0]
    except OSError:
        return None
    user, nice, system, _, _, *more = (int(each) for each in first.split()[1:])
    return (user + nice + system + sum(more[:2])) / TICKS_PER_S  # interrupts are work as well


def _times(entry: Path) -> tuple[int, int, int] | None:
    """A process's parent, its own ticks, and those of the children it has waited for."""
    try:
        fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None  # it has just ended
    return int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
