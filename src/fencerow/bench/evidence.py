"""What a number is worth without: the machine, the versions, the command and the commit beside it."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fencerow.bench.figure import Figure
from fencerow.bench.place import BenchDatabase
from fencerow.version import __version__

LIBRARIES = ("psycopg", "psycopg-pool", "msgspec")


def circumstances() -> dict[str, Any]:
    """The machine and the software, as far as they can be told."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "system": platform.platform(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "fencerow": __version__,
        "commit": _commit(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
    }


def keep(file: Path | None, found: dict[str, Any]) -> None:
    """Write what a bench found there as JSON, the circumstances first; nothing where no file was named."""
    if file is not None:
        kept = {"circumstances": circumstances(), **found}
        file.write_text(json.dumps(kept, indent=1, default=str) + "\n")


def document(
    facts: dict[str, Any], command: Sequence[str], found: Sequence[tuple[BenchDatabase, Figure]]
) -> dict[str, Any]:
    """One JSON document: the circumstances, the command as it was given, and every figure."""
    return {
        **facts,
        "command": ["fencerow", "bench", *command],
        "load_at_end": os.getloadavg()[0],
        "figures": [
            {
                "database": place.about,
                "question": each.question,
                "what": each.what,
                "ours": round(each.ours, 3),
                "unit": each.unit,
                "beside": each.beside if each.raw is not None else None,
                "other": None if each.raw is None else round(each.raw, 3),
                "ratio": None if each.ratio is None else round(each.ratio, 3),
                **{name: round(value, 2) for name, value in each.more.items()},
            }
            for place, each in found
        ],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _commit() -> str | None:
    """The commit of the checkout this code runs from, `+` behind it when files were changed; None when installed."""
    here = Path(__file__).resolve().parent
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],  # noqa: S607
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.strip() or None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
