"""Stopping a process where it stands, and what it holds there."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Whether a process has been stopped by a signal."""
    status_file = Path(f"/proc/{pid}/stat")
    if status_file.exists():
        status = status_file.read_text()
        return status.rpartition(")")[2].split()[0] == "T"
    listed = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True)
    return listed.stdout.strip().startswith("T")


def is_locked(path: str | Path) -> bool:
    """Whether somebody holds a lock of a SQLite database of ours, in one of its two files."""
    for each in (path, f"{path}-workers"):
        with contextlib.closing(sqlite3.connect(each, timeout=1.0, isolation_level=None)) as probe:
            try:
                probe.execute("BEGIN EXCLUSIVE")
                probe.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return True
    return False
