"""What is asked of documents: their fields, and where each stands. A service of yours asks models here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fencerow.demo.fields import DocumentError, Extraction, combine, page_count, page_fields, read_pages


@dataclass
class Place:
    """Where a field stands, as parts of its page: for laying over a picture of any size."""

    field: str
    left: float
    top: float
    right: float
    bottom: float


def fields_of(file: Path) -> Extraction:
    """The fields of a document."""
    return combine(page_fields(page) for page in read_pages(file))


def pages_of(file: Path) -> int:
    """How many pages it has."""
    return page_count(file)


def places_of(file: Path, number: int) -> list[Place]:
    """Where the fields of this page stand."""
    page = next(read_pages(file, first=number))
    return [Place(each.name, *each.box.fractions(page.size)) for each in page_fields(page).fields]


def damaged(error: BaseException) -> bool:
    """A file that is no readable PDF stays so; only the file system's refusal is worth another attempt."""
    return isinstance(error, DocumentError) and error.reason != "unreadable"
