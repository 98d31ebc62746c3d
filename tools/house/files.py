"""Our files, and what stands in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.house.tree import ROOT, short, tracked

__all__ = ["ROOT", "pages", "short", "text_of", "tracked"]


def pages() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md"]


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")
