"""How a table fits its width: which columns are shown, which are cut, which go on below. Prints nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GAP = "  "
END = "…"
FOLD_LEAST = 20


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table for people.

    `least`: where the width does not do, the column may become as narrow as this; None: it is never cut, as an id.
    `folds`: what is too long goes on below, word by word; else it ends in `…`. `lines`: at most so many lines below
    each other, the last of them with `…`; None: as many as it takes.
    `short`: an id, of which a terminal shows the end, unless somebody asks for all of it.
    `rank`: 0 is always shown; where the width does not do, the highest rank is left out first.
    """

    name: str
    least: int | None = None
    folds: bool = False
    rank: int = 0
    lines: int | None = None
    short: bool = False

    def written(self, text: str, width: int) -> list[str]:
        """A cell of this column: one line, or more where it folds."""
        if not self.folds:
            return [cut(text, width)]
        found = folded(text, width)
        if self.lines is None or len(found) <= self.lines:
            return found
        return [*found[: self.lines - 1], cut(" ".join(found[self.lines - 1 :]), width)]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that are shown, by number, how wide each is, and the names of those that were left out."""

    shown: tuple[int, ...]
    widths: tuple[int, ...]
    left_out: tuple[str, ...]


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> Layout:
    """The most columns that fit, each as wide as it needs or as there is room for. No width: all of all.

    What is empty in every row is left out before what says something. If not even the least fits, lines are longer
    than the width, for an id is not cut.
    """
    natural = [max(map(width_of, (column.name, *cells))) for column, cells in _turned(columns, rows)]
    if width is None:
        return Layout(tuple(range(len(columns))), tuple(natural), ())
    says = [any(cell != "-" for cell in cells) for _, cells in _turned(columns, rows)]
    shown = list(range(len(columns)))
    spare = sorted(
        (each for each in shown if columns[each].rank), key=lambda each: (says[each], -columns[each].rank)
    )
    for number in spare:
        if _total([_floor(columns[each], natural[each]) for each in shown]) <= width:
            break
        shown.remove(number)
    widths = [natural[each] for each in shown]
    _narrow(widths, [_floor(columns[each], natural[each]) for each in shown], width)
    left_out = [column.name for each, column in enumerate(columns) if each not in shown and says[each]]
    return Layout(tuple(shown), tuple(widths), tuple(left_out))


def folded(text: str, width: int) -> list[str]:
    """The text in lines of at most this width, broken between words; a word that is longer is broken in itself."""
    lines: list[str] = []
    line, used = "", 0  # each character is measured once: a text of doctor's may name ten thousand queues
    for word in text.split(" "):
        gap, taken = " " if line else "", width_of(word)
        if used + len(gap) + taken <= width:
            line, used = line + gap + word, used + len(gap) + taken
        elif word:
            *before, last = _pieces(word, width)
            lines += [line, *before] if line else before
            line, used = last, width_of(last)
    return [*lines, line]


def cut(text: str, width: int) -> str:
    """The text, or as much of it as fits, with a mark at its end."""
    if width_of(text) <= width:
        return text
    return next(_pieces(text, width - 1), "") + END


def width_of(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_wide, text))


def _wide(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pieces(word: str, width: int) -> Iterator[str]:
    taken = ""
    for character in word:
        if taken and width_of(taken + character) > width:
            yield taken
            taken = ""
        taken += character
    if taken:
        yield taken


def _turned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[tuple[Column, list[str]]]:
    for number, column in enumerate(columns):
        yield column, [row[number] for row in rows]


def _floor(column: Column, natural: int) -> int:
    return natural if column.least is None else min(natural, max(column.least, width_of(column.name)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _narrow(widths: list[int], floors: Sequence[int], available: int) -> None:
    """Take from the widest column that can spare it, until the row fits or nothing can be spared."""
    while _total(widths) > available:
        able = [each for each in range(len(widths)) if widths[each] > floors[each]]
        if not able:
            return
        widest = max(able, key=widths.__getitem__)
        widths[widest] -= 1
