"""The file: where it lies, the library's version and its fault, journal, integrity, room, permissions."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from fencerow.core.finding import Finding, fail, info, ok, warn
from fencerow.db.filesystem import DOUBTFUL, mount_of
from fencerow.db.run import Steps, execute, first_column, operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_file import VERSION_MIN, wal_is_safe

ROOM_WARN_BYTES = 256 * 1024 * 1024
ROOM_FAIL_BYTES = 16 * 1024 * 1024
SYNCHRONOUS = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}
SHOWN_MAX = 3


@operation(repeatable=True, writes="")
def file_settings() -> Steps[tuple[str, str]]:
    """Journal mode and synchronous level of our connection."""
    mode = first_column((yield from execute("journal_mode")))
    level = first_column((yield from execute("synchronous")))
    return mode[0], SYNCHRONOUS.get(level[0], level[0])


@operation(repeatable=True, writes="")
def quick_check() -> Steps[list[str]]:
    """What SQLite's own look over the file says; `ok` alone when all is well."""
    return first_column((yield from execute("quick_check")))


def file_findings(path: Path) -> Iterator[Finding]:
    """What can be seen without opening the database."""
    yield _permissions(path)
    yield room(path)
    mount = mount_of(path)
    if mount and mount.kind in DOUBTFUL:
        yield warn(
            "file system",
            f"{mount.kind}, mounted on {mount.point}: locks may not work beyond this host",
            "let only one side open the file, or move it to a local disk",
        )
    elif mount:
        yield ok("file system", mount.kind)


def examine_sqlite(engine: SqliteEngine) -> Iterator[Finding]:
    """What the library and the open database tell."""
    mode, synchronous = engine.run(file_settings())
    yield _version()
    yield _journal(mode)
    yield _synchronous(synchronous)
    said = engine.run(quick_check())
    if said == ["ok"]:
        yield ok("integrity", "quick_check found nothing")
    else:
        yield fail(
            "integrity",
            f"quick_check: {'; '.join(said[:SHOWN_MAX])}",
            "stop all processes, keep the file, and restore a backup or use sqlite3's .recover",
        )


def _version() -> Finding:
    found = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < VERSION_MIN:
        wanted = ".".join(map(str, VERSION_MIN))
        return fail("version", f"{found} is not supported", f"use a Python with SQLite {wanted} or newer")
    if not wal_is_safe(sqlite3.sqlite_version_info):
        return info(
            "version",
            f"{found} has the WAL-reset fault, which may damage a file in WAL mode; we use a rollback journal",
            "with SQLite 3.51.3, 3.50.7, 3.44.6 or newer single commits are several times faster, "
            "and readers do not wait for writers",
        )
    return ok("version", found)


def _journal(mode: str) -> Finding:
    if mode == "wal" and not wal_is_safe(sqlite3.sqlite_version_info):
        return fail(
            "journal",
            f"the file is in WAL mode, and SQLite {sqlite3.sqlite_version} has the WAL-reset fault",
            "close all other connections, so that we can leave WAL mode, or use a fixed SQLite",
        )
    return ok("journal", mode)


def _synchronous(level: str) -> Finding:
    if level in ("FULL", "EXTRA"):
        return ok("synchronous", level)
    return fail(
        "synchronous",
        f"it is {level}: a power cut loses accepted jobs",
        "set it to FULL, as Fencerow's connections do",
    )


def _permissions(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    if not os.access(path, os.R_OK | os.W_OK):
        return fail("permissions", f"this user may not write {path.name}", "correct its owner or mode")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return fail(
            "permissions",
            f"this user may not write the folder {path.parent}",
            "SQLite makes its journal there",
        )
    if mode & stat.S_IWOTH:
        return warn("permissions", f"everybody may write the file (mode {mode:o})", f"chmod o-w {path.name}")
    return ok("permissions", f"mode {mode:o}")


def room(path: Path) -> Finding:
    """How much room the disk has on which the file lies."""
    free = shutil.disk_usage(path.parent).free
    found = f"{free / 1024 / 1024:,.0f} MiB free"
    if free < ROOM_FAIL_BYTES:
        return fail("room", found, "make room: a full disk refuses submits and outcomes")
    if free < ROOM_WARN_BYTES:
        return warn("room", found, "make room soon")
    return ok("room", found)
