"""Stopping a process where it stands, what it holds there, and that it heeds what it is sent."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def signals_heeded() -> Iterator[None]:
    """Whoever is started inside heeds SIGINT and SIGHUP.

    A child inherits what is ignored, and who runs the tests by `nohup`, or by `&` in a script, has said so.
    """
    ignored = [each for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, signal.SIG_DFL)
    try:
        yield
    finally:
        for each in ignored:
            signal.signal(each, signal.SIG_IGN)


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
