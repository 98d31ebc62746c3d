"""What reading a document yields.

Lengths are PDF points (1/72 inch) measured from the top left corner of the page
as a viewer shows it: page rotation and crop box have already been applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Reason = Literal["empty", "not-a-pdf", "damaged", "encrypted", "too-large", "unreadable"]
How = Literal["label-left", "label-above", "pattern", "font-size", "first-line"]


class DocumentError(Exception):
    """The document itself cannot be read, so trying again cannot help.

    Except for `unreadable` (the file system refused), which may pass.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(reason, message)  # both in args, so that it survives pickling
        self.reason: Reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height of a page as shown."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle around ink on one page; `page` counts from 1, `top` is less than `bottom`."""

    page: int
    left: float
    top: float
    right: float
    bottom: float

    def fractions(self, size: Size) -> tuple[float, float, float, float]:
        """Left, top, right, bottom as parts of the page, for laying over an image of any scale."""
        w, h = size.width, size.height
        return (self.left / w, self.top / h, self.right / w, self.bottom / h)


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box that holds all of `boxes`, which must not be empty and share a page."""
    every = list(boxes)
    return Box(
        every[0].page,
        min(b.left for b in every),
        min(b.top for b in every),
        max(b.right for b in every),
        max(b.bottom for b in every),
    )


@dataclass(frozen=True, slots=True)
class Word:
    """Text between spaces; `letters` has the box of each of its characters."""

    text: str
    box: Box
    baseline: float
    size: float
    letters: tuple[Box, ...]
    level: bool = True


@dataclass(frozen=True)
class TextLine:
    """Words that read on from each other. Cells of one table row are separate lines."""

    words: tuple[Word, ...]
    row: int

    @cached_property
    def text(self) -> str:
        return " ".join(w.text for w in self.words)

    @cached_property
    def box(self) -> Box:
        return around(w.box for w in self.words)

    @cached_property
    def size(self) -> float:
        return max(w.size for w in self.words)


@dataclass(frozen=True, slots=True)
class PageText:
    """One page's text from top to bottom; `of` is how many pages will be read in all."""

    number: int
    of: int
    size: Size
    lines: tuple[TextLine, ...]
    note: str = ""

    @property
    def words(self) -> int:
        return sum(len(line.words) for line in self.lines)


@dataclass(frozen=True, slots=True)
class Field:
    """A value as printed, where it stands and what gave it away.

    `normal` is the ISO date, the bare decimal number, or the number without spaces;
    None where the print is ambiguous (03/04/2026) or there is nothing to normalise.
    """

    name: str
    value: str
    box: Box
    how: How
    normal: str | None = None


@dataclass(frozen=True, slots=True)
class PageFields:
    """What one page contributes: small and JSON-friendly, so it can be kept as a checkpoint."""

    number: int
    of: int
    size: Size
    words: int
    fields: list[Field]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The whole document's result; `sizes[box.page - 1]` is the page a box lies on."""

    pages: int
    words: int
    fields: list[Field]
    sizes: list[Size]
    note: str = ""
