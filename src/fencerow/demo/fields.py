"""Typed fields with their boxes: page by page, then put together.

for page in read_pages(path):
    parts.append(page_fields(page))  # report, keep as a checkpoint
result = combine(parts)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from os import PathLike
from typing import Final

from fencerow.demo.generic import headings, shaped, title
from fencerow.demo.labelled import labelled
from fencerow.demo.model import (
    Box,
    DocumentError,
    Extraction,
    Field,
    PageFields,
    PageText,
    Size,
)
from fencerow.demo.reading import DEFAULT, Limits, page_count, read_pages
from fencerow.demo.spans import Span

__all__ = [
    "Box",
    "DocumentError",
    "Extraction",
    "Field",
    "Limits",
    "PageFields",
    "PageText",
    "Size",
    "combine",
    "extract",
    "extract_fields",
    "page_count",
    "page_fields",
    "read_pages",
]

MOST: Final = 500  # fields, of a page and of a document


def page_fields(page: PageText) -> PageFields:
    """The fields of one page in reading order. Depends on nothing but the page."""
    found = sorted(islice(_found(page), MOST), key=lambda pair: (pair[0], pair[1].box.left))
    return PageFields(page.number, page.of, page.size, page.words, [f for _, f in found], page.note)


def _found(page: PageText) -> Iterator[tuple[int, Field]]:
    """Fields with their rows."""
    top = title(page) if page.number == 1 else None
    if top:
        yield top[1][0].row, top[0]
    taken: list[Span] = []
    for label, span, how in labelled(page):
        if not any(span.overlaps(other) for other in taken):
            taken.append(span)
            yield span.line.row, Field(label.name, span.text, span.box, how, span.normal)
    yield from shaped(page, taken)
    yield from headings(page, top[1] if top else ())


def combine(parts: Iterable[PageFields]) -> Extraction:
    """The document's result from its pages, in any order; a value repeated is kept where it came first."""
    pages = sorted(parts, key=lambda p: p.number)
    words = sum(p.words for p in pages)
    fields: dict[tuple[str, str], Field] = {}
    for field in (f for p in pages for f in p.fields):
        if len(fields) < MOST:
            fields.setdefault((field.name, field.normal or field.value), field)
    note = next((p.note for p in pages if p.note), "")
    if not words:
        note = "no text: the pages are probably scanned images"
    return Extraction(len(pages), words, list(fields.values()), [p.size for p in pages], note)


def extract_fields(pages: Iterable[PageText]) -> Extraction:
    """All pages at once, for a caller that needs no progress."""
    return combine(page_fields(page) for page in pages)


def extract(path: str | PathLike[str], limits: Limits = DEFAULT) -> Extraction:
    """A file's fields; raises `DocumentError` and nothing else for what is wrong with the file."""
    return extract_fields(read_pages(path, limits=limits))
