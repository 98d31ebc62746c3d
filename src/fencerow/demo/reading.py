"""Documents page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from fencerow.demo import layout, pdfium
from fencerow.demo.model import DocumentError, PageText


@dataclass(frozen=True, slots=True)
class Limits:
    """Where reading stops: a larger file is refused, further pages are left out with a note."""

    bytes: int = 64 * 1024 * 1024
    pages: int = 300
    characters: int = 50_000  # of one page


DEFAULT: Final = Limits()


def page_count(path: str | PathLike[str], limits: Limits = DEFAULT) -> int:
    """How many pages `read_pages` will yield."""
    document = pdfium.open_document(_load(Path(path), limits))
    with pdfium.LOCK:
        try:
            return min(_pages(document), limits.pages)
        finally:
            document.close()


def read_pages(path: str | PathLike[str], *, first: int = 1, limits: Limits = DEFAULT) -> Iterator[PageText]:
    """Pages from `first` on, each read when asked for, so the caller can report and resume.

    The file is read into memory at the first page and may be replaced after that.
    A caller that stops early should close the iterator, or leave it to the collector.
    """
    document = pdfium.open_document(_load(Path(path), limits))
    try:
        with pdfium.LOCK:
            count = _pages(document)
        for index in range(first - 1, min(count, limits.pages)):
            yield _page(document, index, count, limits)
    finally:
        with pdfium.LOCK:
            document.close()


def _page(document: Any, index: int, count: int, limits: Limits) -> PageText:
    size, glyphs = pdfium.read_page(document, index, limits.characters)
    note = f"read {limits.pages} of {count} pages" if count > limits.pages else ""
    if len(glyphs) >= limits.characters:
        note = f"page {index + 1}: read {limits.characters} characters"
    lines = layout.lines(layout.words(glyphs))
    return PageText(index + 1, min(count, limits.pages), size, lines, note)


def _pages(document: Any) -> int:
    count = len(document)
    if count < 1:
        raise DocumentError("damaged", "the document has no pages")
    return count


def _load(path: Path, limits: Limits) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limits.bytes + 1)
    except OSError as error:
        raise DocumentError("unreadable", error.strerror or "the file cannot be read") from error
    if not data:
        raise DocumentError("empty", "the file has no content")
    if len(data) > limits.bytes:
        raise DocumentError("too-large", f"the file has more than {limits.bytes} bytes")
    # Readers accept bytes before the header (mail gateways put them there), but not many.
    if b"%PDF-" not in data[:1024]:
        raise DocumentError("not-a-pdf", "the file does not start like a PDF")
    return data
