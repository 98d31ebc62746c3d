"""What no committed file may contain, and the shape of the changelog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.house.files import ROOT, short, text_of, tracked

# Written in parts so that this file does not find itself.
FORBIDDEN = {
    "a package index": re.compile(r"\b(py" + r"pi|files\.pythonhosted|test\.py" + r"pi)\.(org|io)\b"),
    "another index or mirror": re.compile(
        r"\b(extra-)?(index" + r"-url|art" + r"ifactory|registry\.npmjs)\b"
    ),
    "a path of somebody's machine": re.compile(
        r"(?<![\w.])(/wo" + r"rk/|/tmp/" + r"wt|/ro" + r"ot/|/ho" + r"me/(?!user\b|me\b|you\b))"
    ),
}
# The lock's own command spells the options that keep an index out of it.
ALLOWED = {("dev.py", "another index or mirror")}
CHANGELOG = "CHANGELOG.md"
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def faults() -> Iterator[str]:
    for path in tracked():
        for what, pattern in FORBIDDEN.items():
            if (short(path), what) not in ALLOWED and pattern.search(text_of(path)):
                yield from _lines(path, what, pattern)
    yield from (f"{CHANGELOG}: {fault}" for fault in _changelog())


def _lines(path: Path, what: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if pattern.search(line):
            yield f"{short(path)}:{number}: names {what}: take it out: {line.strip()[:100]}"


def _changelog() -> Iterator[str]:
    text = text_of(ROOT / CHANGELOG)
    first, *others = re.findall(r"^## (.+)$", text, re.MULTILINE)
    if first != "[Unreleased]":
        yield f"begin with `## [Unreleased]`, not with {first!r}"
    for heading in others:
        if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading):
            yield f"write {heading!r} as `[1.2.3] - 2026-01-31`"
    for kind in sorted(set(re.findall(r"^### (.+)$", text, re.MULTILINE)) - KINDS):
        yield f"{kind!r} is none of {', '.join(sorted(KINDS))}"
