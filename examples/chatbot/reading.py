"""A source is a text, Markdown or PDF file; reading it gives sections: a heading and its paragraphs."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pypdfium2

_PDFIUM = threading.Lock()  # the library is not thread-safe, not even across documents
_HEADING = re.compile(r"#{1,6}\s+(.+)")


@dataclass
class Section:
    """A heading with what stands under it."""

    heading: str
    paragraphs: list[str] = field(default_factory=list)


def sections(path: Path, data: bytes) -> list[Section]:
    """What a source says.

    Raises:
        ValueError: it is of no kind that we read, or there is no text in it. Trying again does not help.
    """
    if path.suffix not in (".txt", ".md", ".pdf"):
        raise ValueError(f"{path.name} is neither text nor Markdown nor PDF")
    text = pdf_text(data) if path.suffix == ".pdf" else _text(path.name, data)
    found = [section for section in _sections(text, path.stem.replace("_", " ")) if section.paragraphs]
    if not found:
        raise ValueError(f"there is no text in {path.name}")
    return found


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # By itself it would be tried again: where bytes come from a service, they may be half of an answer.
        raise ValueError(f"{name} is no UTF-8: {error}") from None


def pdf_text(data: bytes) -> str:
    """The text of all pages."""
    with _PDFIUM:
        document = pypdfium2.PdfDocument(data)
        try:
            return "\n\n".join(_page_text(page) for page in document)
        finally:
            document.close()


def _page_text(page: pypdfium2.PdfPage) -> str:
    text = page.get_textpage()
    try:
        return str(text.get_text_bounded()).replace("\r\n", "\n")
    finally:
        text.close()
        page.close()


def _sections(text: str, title: str) -> Iterator[Section]:
    section = Section(title)
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().splitlines()
        paragraph: list[str] = []
        for line in map(str.strip, lines):
            if heading := _heading(line, alone=len(lines) == 1):
                section.paragraphs += [" ".join(paragraph)] if paragraph else []
                yield section
                section, paragraph = Section(heading), []
            else:
                paragraph.append(line)
        section.paragraphs += [" ".join(paragraph)] if paragraph else []
    yield section


def _heading(line: str, *, alone: bool) -> str | None:
    """A Markdown heading, a numbered one, or a short line of its own that does not end like a sentence."""
    if found := _HEADING.fullmatch(line):
        return found[1]
    titled = alone or re.match(r"\d+\. [A-Z]", line)
    return line if titled and len(line) <= 60 and not re.search(r"[.!?:;,]$", line) else None
