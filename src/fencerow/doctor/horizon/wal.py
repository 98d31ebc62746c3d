"""The write-ahead log of a SQLite file: how large it is, and who keeps it from being reset, as Linux tells it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fencerow.command.times import span
from fencerow.core.finding import Finding, ok, warn

NAME = "write-ahead log"
WARN_BYTES = 64 * 1024 * 1024
LOCKS = Path("/proc/locks")
# Where in the file -shm a reader of the log holds its lock; the first of the five is of those that read no log.
READERS = range(124, 128)
SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class WalReader:
    """A process that reads by the log now, and for how long it has been running."""

    pid: int
    command: str
    runs_s: float


def examine_wal(path: Path) -> Iterator[Finding]:
    """How large the log is; nothing where there is none."""
    wal = Path(f"{path}-wal")
    try:
        size = wal.stat().st_size
    except FileNotFoundError:
        return
    found = f"{size / 1024 / 1024:,.1f} MiB"
    if size < WARN_BYTES:
        yield ok(NAME, found)
        return
    who = "; ".join(
        f"process {each.pid} ({each.command}), which has run for {span(each.runs_s)}"
        for each in readers(Path(f"{path}-shm"))[:SHOWN_MAX]
    )
    yield warn(
        NAME,
        f"{found}: it was not reset for long; {f'it is read by {who}' if who else 'nobody reads it just now'}",
        "let the reader end its transaction; the next checkpoint then begins the log again",
    )


def readers(shm: Path) -> list[WalReader]:
    """Who reads by the log just now; nobody where that cannot be known."""
    try:
        inode = shm.stat().st_ino
        lines = LOCKS.read_text().splitlines()
    except OSError:
        return []
    pids = {pid for line in lines if (pid := _reading(line, inode)) is not None}
    return [each for pid in sorted(pids) if (each := _process(pid)) is not None]


def _reading(line: str, inode: int) -> int | None:
    """The process of a line such as `1: POSIX ADVISORY READ 4711 fd:01:99 124 124`, if it locks a reader's place."""
    words = line.replace("-> ", "").split()
    if len(words) < 8 or not words[5].endswith(f":{inode}") or not words[6].isdigit():
        return None
    return int(words[4]) if int(words[6]) in READERS else None


def _process(pid: int) -> WalReader | None:
    folder = Path(f"/proc/{pid}")
    try:
        command = folder.joinpath("comm").read_text().strip()
        began_s = folder.stat().st_ctime
    except OSError:
        return None
    return WalReader(
        pid, command if pid != os.getpid() else f"{command}, this one", max(0.0, time.time() - began_s)
    )
