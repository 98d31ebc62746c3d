"""The files that belong to the product, as git knows them."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def tracked() -> tuple[Path, ...]:
    """Every tracked text file, and those about to be tracked; without a repository, every file of the source tree."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        names = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        names = [path for top in ("src", "tests", "docs", "tools") for path in (ROOT / top).rglob("*")]
    return tuple(path for path in names if path.is_file() and not binary(path))


def binary(path: Path) -> bool:
    return b"\0" in path.read_bytes()[:8000] or path.suffix in (".pdf", ".png", ".pyc")


def python_files(*tops: str) -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in tops]


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
