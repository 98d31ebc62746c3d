"""A stretch of a line's text and where it stands on the page, exact to the character."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fencerow.demo.model import Box, TextLine, around
from fencerow.demo.patterns import PATTERNS, Kind

_LEAD: Final = re.compile(r"[\s:#=–-]*(?:(?:am|on|of|vom|du|le)\s+)?")


@dataclass(frozen=True, slots=True)
class Span:
    """`start` and `end` count characters of `line.text`."""

    line: TextLine
    start: int
    end: int
    normal: str | None = None

    @property
    def text(self) -> str:
        return self.line.text[self.start : self.end]

    @property
    def box(self) -> Box:
        return around(_parts(self.line, self.start, self.end))

    def overlaps(self, other: Span) -> bool:
        return self.line is other.line and self.start < other.end and other.start < self.end


def _parts(line: TextLine, start: int, end: int) -> Iterator[Box]:
    at = 0
    for word in line.words:
        first, last = max(start - at, 0), min(end - at, len(word.text))
        if first < last:
            yield from word.letters[first:last]
        at += len(word.text) + 1


def offset(line: TextLine, index: int) -> int:
    """Where the word at `index` starts in the line's text."""
    return sum(len(w.text) + 1 for w in line.words[:index])


def find(kind: Kind, line: TextLine) -> Iterator[Span]:
    """Every stretch of the line that has the kind's shape and passes its check."""
    pattern = PATTERNS[kind]
    for match in pattern.shape.finditer(line.text):
        normal = pattern.normal(match)
        if normal is not None or not pattern.required:
            yield Span(line, match.start(), match.end(), normal)


def begins(kind: Kind, line: TextLine, start: int = 0) -> Span | None:
    """The stretch right at `start`, past a colon or other lead-in of a value."""
    lead = _LEAD.match(line.text, start)
    at = lead.end() if lead else start
    pattern = PATTERNS[kind]
    match = pattern.shape.match(line.text, at)
    normal = pattern.normal(match) if match else None
    if match is None or (normal is None and pattern.required):
        return None
    return Span(line, match.start(), match.end(), normal)
