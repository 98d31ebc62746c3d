"""Sections become chunks of a size that is searched well, each with the end of the one before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from examples.chatbot.reading import Section

WORDS_MAX = 70
OVERLAP_WORDS = 12


@dataclass(frozen=True)
class Chunk:
    """A piece of a section; `text` is what is embedded and shown."""

    heading: str
    text: str


def chunks(sections: Iterable[Section]) -> list[Chunk]:
    """Whole sentences, at most WORDS_MAX words (or one long sentence), never across a heading."""
    return [Chunk(section.heading, text) for section in sections for text in _packed(section)]


def _packed(section: Section) -> Iterator[str]:
    words: list[str] = []
    fresh = 0  # how many of them are not from the chunk before
    for paragraph in section.paragraphs:
        for sentence in re.split(r"(?<=[.!?])\s+", paragraph):
            more = sentence.split()
            if fresh and len(words) + len(more) > WORDS_MAX:
                yield " ".join(words)
                words, fresh = words[-OVERLAP_WORDS:], 0
            words += more
            fresh += len(more)
    if fresh:
        yield " ".join(words)
