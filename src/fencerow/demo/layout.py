"""From placed characters to words, and from words to lines, by geometry alone.

The order in which a PDF draws its text says little about how it reads, so lines
are found anew from the baselines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fencerow.demo.model import Box, TextLine, Word, around

CELL_GAP = 1.0  # of the font size; a justified line's spaces stay below this
WORD_GAP = 0.6
SAME_ROW = 0.3


@dataclass(frozen=True, slots=True)
class Glyph:
    """One character where a viewer shows it; a blank one only separates words."""

    text: str
    box: Box | None
    baseline: float
    size: float
    level: bool


def words(glyphs: Iterable[Glyph]) -> Iterator[Word]:
    """Words in drawing order."""
    run: list[Glyph] = []
    for glyph in glyphs:
        if run and (glyph.box is None or not _reads_on(run[-1], glyph)):
            yield _word(run)
            run = []
        if glyph.box is not None:
            run.append(glyph)
    if run:
        yield _word(run)


def _reads_on(last: Glyph, this: Glyph) -> bool:
    if last.box is None or this.box is None or last.level != this.level:
        return False
    if not this.level:
        return True  # spaces alone separate slanted words
    if abs(last.baseline - this.baseline) > 0.5 * last.size:
        return False
    return -last.size < this.box.left - last.box.right < WORD_GAP * last.size


def _word(run: list[Glyph]) -> Word:
    # A glyph may stand for several characters (ligatures); each gets the glyph's box.
    letters = tuple(g.box for g in run if g.box is not None for _ in g.text)
    text = "".join(g.text for g in run)
    size = max(g.size for g in run)
    return Word(text, around(letters), run[0].baseline, size, letters, run[0].level)


def lines(found: Iterable[Word]) -> tuple[TextLine, ...]:
    """Lines from top to bottom and, within a row, from left to right."""
    every = list(found)
    rows = _rows([w for w in every if w.level])
    level = [TextLine(tuple(cell), n) for n, row in enumerate(rows) for cell in _cells(row)]
    slanted = [TextLine((w,), len(rows) + n) for n, w in enumerate(w for w in every if not w.level)]
    return tuple(level + slanted)


def _rows(found: list[Word]) -> list[list[Word]]:
    rows: list[list[Word]] = []
    for word in sorted(found, key=lambda w: (w.baseline, w.box.left)):
        first = rows[-1][0] if rows else None
        if first and word.baseline - first.baseline <= SAME_ROW * min(first.size, word.size):
            rows[-1].append(word)
        else:
            rows.append([word])
    return rows


def _cells(row: list[Word]) -> Iterator[list[Word]]:
    cell: list[Word] = []
    for word in sorted(row, key=lambda w: w.box.left):
        if cell and word.box.left - cell[-1].box.right > CELL_GAP * max(word.size, cell[-1].size):
            yield cell
            cell = []
        cell.append(word)
    if cell:
        yield cell
