"""Values found by the label to their left or above them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fencerow.demo.labels import Label, label_at
from fencerow.demo.model import How, PageText, TextLine
from fencerow.demo.spans import Span, begins, offset

REACH: Final = 2.6  # how far under its label a value may stand, in font sizes


def labelled(page: PageText) -> Iterator[tuple[Label, Span, How]]:
    """Every labelled value of the page, in reading order."""
    rows: dict[int, list[TextLine]] = {}
    for line in page.lines:
        rows.setdefault(line.row, []).append(line)
    for line in page.lines:
        for label, start, end in _labels(line):
            found = _value(label, line, start, end, rows)
            if found:
                yield label, *found


def _labels(line: TextLine) -> Iterator[tuple[Label, int, int]]:
    index = 0
    while index < len(line.words):
        found = label_at(line.words, index)
        if found:
            yield found[0], index, found[1]
        index = found[1] if found else index + 1


def _value(
    label: Label, line: TextLine, start: int, end: int, rows: dict[int, list[TextLine]]
) -> tuple[Span, How] | None:
    if end < len(line.words):
        if label.kind == "text" and not (start == 0 and line.words[end - 1].text.endswith(":")):
            return None  # "from" and "customer" are also plain words
        span = begins(label.kind, line, offset(line, end))
        return (span, "label-left") if span else None
    span = _beside(label, line, rows)
    if span:
        return span, "label-left"
    # Only a line that is nothing but the label heads what stands under it.
    span = _under(label, line, rows) if label.above and start == 0 else None
    return (span, "label-above") if span else None


def _beside(label: Label, line: TextLine, rows: dict[int, list[TextLine]]) -> Span | None:
    """The nearest cell to the right; amounts may have other columns in between."""
    cells = [c for c in rows[line.row] if c.box.left > line.box.right]
    for cell in cells if label.kind == "price" else cells[:1]:
        if label_at(cell.words, 0):
            return None  # the next label: this one heads a column
        span = begins(label.kind, cell)
        if span and (label.kind != "text" or line.text.endswith(":")):
            return span
    return None


def _under(label: Label, line: TextLine, rows: dict[int, list[TextLine]]) -> Span | None:
    head = line.box
    for row in range(line.row + 1, line.row + 4):
        for cell in rows.get(row, []):
            box = cell.box
            near = 0 < cell.words[0].baseline - line.words[0].baseline <= REACH * max(line.size, cell.size)
            aligned = abs(box.left - head.left) < line.size or abs(box.right - head.right) < line.size
            if near and aligned and not label_at(cell.words, 0):
                return begins(label.kind, cell)
    return None
