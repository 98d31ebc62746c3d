"""All that the command prints goes through here, so that no job's text can move a cursor or forge a line."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TextIO

import msgspec

from fencerow.command.documents import plain
from fencerow.command.ids import is_id, short_id
from fencerow.command.layout import FOLD_LEAST, GAP, Column, Layout, fitted, folded, width_of
from fencerow.core.errors import FencerowError
from fencerow.db.text import clean

COLOURS = {
    **dict.fromkeys(("succeeded", "ok", "alive"), "32"),
    **dict.fromkeys(("failed", "fail", "dead", "no"), "31"),
    **dict.fromkeys(("warn", "running", "paused"), "33"),
    **dict.fromkeys(("cancelled", "retired", "info"), "2"),
}


def say(text: str = "") -> None:
    """One line of text, whatever it holds."""
    print(clean(text))


def say_text(text: str, *, indent: str = "") -> None:
    """A sentence or two, in lines of the terminal's width, those after the first a little to the right."""
    whole = width()
    room = None if whole is None else max(whole - len(indent + GAP), FOLD_LEAST)
    lines = [clean(text)] if room is None else folded(clean(text), room)
    for number, line in enumerate(lines):
        print(f"{indent}{GAP if number else ''}{line}")


def say_block(text: str) -> None:
    """Several lines that are ours, such as SQL; only the line breaks stay as they are."""
    for line in text.splitlines():
        say(line)


def say_part(text: str) -> None:
    """A part of a text as it comes: its line breaks stay, and the next part goes on behind it."""
    print("\n".join(map(clean, text.split("\n"))), end="", flush=True)


def say_json(value: Any) -> None:
    """One JSON document and nothing else, as `plain` makes it. In ASCII: nothing reaches the terminal through it."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=True, allow_nan=False))


def warn(text: str) -> None:
    """A line for the person at the terminal, apart from the output."""
    print(clean(text), file=sys.stderr)


def report(error: FencerowError, *, stream: TextIO | None = None) -> None:
    """What happened, why and what to do: three lines on the standard error."""
    for line in error.lines():
        print(clean(line), file=stream or sys.stderr)


def table(
    headers: Sequence[str | Column],
    rows: Sequence[Sequence[object]],
    *,
    none: str = "nothing found",
    full: bool = False,
) -> None:
    """Aligned columns that keep to `width()`; each says whether it is cut, goes on below, or is left out.

    `full`: ids are shown whole at a terminal too, as everywhere else.
    """
    if not rows:
        say(f"({none})")
        return
    columns = [each if isinstance(each, Column) else Column(each) for each in headers]
    if is_terminal() and not full:
        rows = [_shortened(columns, row) for row in rows]
    cells = [[_shown(value) for value in row] for row in rows]
    layout = fitted(columns, cells, width())
    numbers = {each for each in layout.shown if _are_numbers([row[each] for row in rows])}
    coloured = _coloured()
    for number, row in enumerate([[column.name for column in columns], *cells]):
        for line in _lines(row, columns, layout, numbers, coloured=coloured and number > 0):
            print(line.rstrip())
    if layout.left_out:
        say(f"({', '.join(layout.left_out)}: in a wider terminal, or with --json)")


def facts(pairs: Mapping[str, object]) -> None:
    """Names and values, one a line; what is None is left out, and what is too long for the line goes on below."""
    shown = {name: _shown(value) for name, value in pairs.items() if value is not None}
    names = max(map(len, shown), default=0)
    whole = width()
    room = None if whole is None else max(whole - names - len(GAP), FOLD_LEAST)
    for name, value in shown.items():
        lines = [value] if room is None else folded(value, room)
        for number, line in enumerate(lines):
            print(f"{'' if number else clean(name):<{names}}{GAP}{line}".rstrip())


def width() -> int | None:
    """How wide lines may be: the terminal, or else what COLUMNS says; None: the reader of a pipe or file gets all."""
    if is_terminal():
        return shutil.get_terminal_size().columns
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if stated.isascii() and stated.isdigit() and int(stated) > 0 else None


def height() -> int | None:
    """How many lines the terminal's window has; None: there is no window."""
    return shutil.get_terminal_size().lines if is_terminal() else None


def is_terminal() -> bool:
    """Whether a person reads the output as it comes."""
    return sys.stdout.isatty()


def document(value: Any) -> str:
    """A JSON value on one line."""
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean(str(value))


def _shortened(columns: Sequence[Column], row: Sequence[object]) -> list[object]:
    return [
        short_id(value) if column.short and isinstance(value, str) and is_id(value) else value
        for column, value in zip(columns, row, strict=True)
    ]


def _are_numbers(values: Sequence[object]) -> bool:
    """Whether a column holds numbers, so that they stand below each other by their last digit."""
    there = [value for value in values if value is not None]
    return bool(there) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in there
    )


def _lines(
    row: Sequence[str], columns: Sequence[Column], layout: Layout, numbers: set[int], *, coloured: bool
) -> Iterator[str]:
    """One row of the table: one line, or more where a column folds."""
    parts = [
        columns[each].written(row[each], room) for each, room in zip(layout.shown, layout.widths, strict=True)
    ]
    for line in zip_longest(*parts, fillvalue=""):
        yield GAP.join(
            _cell(text, room, right=each in numbers, coloured=coloured)
            for text, each, room in zip(line, layout.shown, layout.widths, strict=True)
        )


def _cell(text: str, room: int, *, right: bool, coloured: bool) -> str:
    padding = " " * (room - width_of(text))
    colour = COLOURS.get(text) if coloured else None
    shown = f"\x1b[{colour}m{text}\x1b[0m" if colour else text
    return padding + shown if right else shown + padding


def _coloured() -> bool:
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
