"""The list of all pages, as docs/README.md has it: the order of the navigation and of llms.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.house.files import ROOT, text_of

LIST = ROOT / "docs" / "README.md"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", re.MULTILINE)
OWN_INDEX = (
    "reference",
    "decisions",
    "evidence",
    "pictures",
)  # folders whose pages are not listed one by one


@dataclass(frozen=True)
class Entry:
    """A page with its short title, and what it has."""

    title: str
    path: Path
    note: str


@dataclass(frozen=True)
class Section:
    """Pages that belong together."""

    title: str
    entries: tuple[Entry, ...]


@cache
def sections() -> tuple[Section, ...]:
    """The list, from top to bottom."""
    parts = SECTION.split(text_of(LIST))
    return tuple(
        Section(title, tuple(_entries(text))) for title, text in zip(parts[1::2], parts[2::2], strict=True)
    )


def _entries(text: str) -> Iterator[Entry]:
    for title, target, note in ENTRY.findall(text):
        yield Entry(title, (LIST.parent / target).resolve(), note)


@cache
def listed() -> tuple[Entry, ...]:
    """All entries in their order."""
    return tuple(entry for section in sections() for entry in section.entries)


def faults() -> Iterator[str]:
    """What is listed twice, and pages for users that stand in no list."""
    paths = [entry.path for entry in listed()]
    for path in paths:
        if paths.count(path) > 1:
            yield f"docs/README.md: lists {path.relative_to(ROOT)} twice"
    docs = ROOT / "docs"
    for page in sorted(docs.rglob("*.md")):
        parts = page.relative_to(docs).parts
        if page not in paths and page != LIST and parts[0] not in OWN_INDEX:
            yield f"docs/README.md: does not list docs/{'/'.join(parts)}: add a line where it belongs"
