"""What any document has, labels or not: a title, headings, and values of a known shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fencerow.demo.model import Field, PageText, TextLine, around
from fencerow.demo.patterns import ANYWHERE, Kind
from fencerow.demo.spans import Span, find

NAMES: Final[dict[Kind, str]] = {"vat": "vat_id"}
LARGER: Final = 1.12  # a heading against the text it heads


def shaped(page: PageText, taken: list[Span]) -> Iterator[tuple[int, Field]]:
    """Values of a known shape and their rows, except where `taken` already has them; `taken` grows."""
    for kind in ANYWHERE:
        for line in page.lines:
            for span in find(kind, line):
                if not any(span.overlaps(other) for other in taken):
                    taken.append(span)
                    name = NAMES.get(kind, kind)
                    yield line.row, Field(name, span.text, span.box, "pattern", span.normal)


def title(page: PageText) -> tuple[Field, tuple[TextLine, ...]] | None:
    """The largest text of the page, or its first line where all is one size; and its lines."""
    wordy = [line for line in page.lines if sum(c.isalpha() for c in line.text) >= 3]
    if not wordy:
        return None
    largest = max(line.size for line in wordy)
    if largest < LARGER * body_size(page):
        return _titled(wordy[:1], "first-line")
    first = next(n for n, line in enumerate(wordy) if line.size > 0.98 * largest)
    run = wordy[first : first + 1]
    for line in wordy[first + 1 : first + 3]:
        if line.size > 0.98 * largest and line.box.top - run[-1].box.bottom < largest:
            run.append(line)
        else:
            break
    return _titled(run, "font-size")


def _titled(run: list[TextLine], how: str) -> tuple[Field, tuple[TextLine, ...]]:
    text = " ".join(line.text for line in run)[:300]
    box = around(line.box for line in run)
    return Field("title", text, box, "font-size" if how == "font-size" else "first-line"), tuple(run)


def headings(page: PageText, not_these: tuple[TextLine, ...]) -> Iterator[tuple[int, Field]]:
    """Short lines that stand alone in their row and are set larger than the page's text."""
    alone = Counter(line.row for line in page.lines)
    least = LARGER * body_size(page)
    for line in page.lines:
        if ". . ." in line.text:
            continue  # a table of contents leads to its headings by dots
        wordy = sum(c.isalpha() for c in line.text) >= 3 and len(line.text) <= 120
        if wordy and line.size >= least and alone[line.row] == 1 and line not in not_these:
            yield line.row, Field("heading", line.text, line.box, "font-size")


def body_size(page: PageText) -> float:
    """The size most characters of the page have."""
    sizes: Counter[float] = Counter()
    for line in page.lines:
        for word in line.words:
            sizes[round(word.size, 1)] += len(word.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0
