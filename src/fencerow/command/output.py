"""All that the command prints goes through here, so that no job's text can move a cursor or forge a line."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, TextIO

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.core.model.job import instant
from fencerow.core.telemetry import clean

COLOURS = {
    **dict.fromkeys(("succeeded", "ok", "alive"), "32"),
    **dict.fromkeys(("failed", "fail", "dead", "no"), "31"),
    **dict.fromkeys(("warn", "running", "paused"), "33"),
    **dict.fromkeys(("cancelled", "retired", "info"), "2"),
}
GAP = "  "
COLUMN_WIDTH_MIN = 8


def say(text: str = "") -> None:
    """One line of text, whatever it holds."""
    print(clean(text))


def say_block(text: str) -> None:
    """Several lines that are ours, such as SQL; only the line breaks stay as they are."""
    for line in text.splitlines():
        say(line)


def say_json(value: Any) -> None:
    """One JSON document and nothing else. ASCII only: a terminal cannot be reached through it either."""
    print(json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=True, allow_nan=False))


def warn(text: str) -> None:
    """A line for the person at the terminal, apart from the output."""
    print(clean(text), file=sys.stderr)


def report(error: FencerowError, *, stream: TextIO | None = None) -> None:
    """What happened, why and what to do: three lines on the standard error."""
    for line in error.lines():
        print(clean(line), file=stream or sys.stderr)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, none: str = "nothing found") -> None:
    """Aligned columns; on a terminal the widest one is cut so that each row keeps to its line."""
    if not rows:
        say(f"({none})")
        return
    cells = [[_shown(value) for value in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(headers, *cells, strict=True)]
    if is_terminal():
        _narrow(widths, shutil.get_terminal_size().columns)
    print(_line(headers, widths).rstrip())
    coloured = _coloured()
    for row in cells:
        line = _line(row, widths, coloured=coloured)
        print(line.rstrip())


def facts(pairs: Mapping[str, object]) -> None:
    """Names and values, one a line; what is None is left out."""
    shown = {name: _shown(value) for name, value in pairs.items() if value is not None}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        print(f"{clean(name):<{width}}{GAP}{value}")


def is_terminal() -> bool:
    """Whether a person reads the output as it comes."""
    return sys.stdout.isatty()


def when(us: int | None) -> str | None:
    """An instant of the database in UTC, to the second."""
    moment = instant(us)
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def span(seconds: float) -> str:
    """A length of time for people: the two largest units."""
    sign, rest = ("-" if seconds < 0 else ""), abs(seconds)
    if rest < 10:
        return f"{sign}{rest:.1f} s"
    whole = round(rest)
    for unit, below, size, small in (("d", "h", 86_400, 3_600), ("h", "min", 3_600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            return f"{sign}{whole // size} {unit} {whole % size // small} {below}"
    return f"{sign}{whole} s"


def document(value: Any) -> str:
    """A JSON value on one line."""
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean(str(value))


def _line(values: Sequence[str], widths: Sequence[int], *, coloured: bool = False) -> str:
    return GAP.join(_cell(value, width, coloured) for value, width in zip(values, widths, strict=True))


def _cell(value: str, width: int, coloured: bool) -> str:
    text = value if _width(value) <= width else _cut(value, width)
    padding = " " * (width - _width(text))
    colour = COLOURS.get(text) if coloured else None
    return f"\x1b[{colour}m{text}\x1b[0m{padding}" if colour else text + padding


def _cut(text: str, width: int) -> str:
    taken = ""
    for character in text:
        if _width(taken + character) > width - 1:
            break
        taken += character
    return taken + "…"


def _narrow(widths: list[int], available: int) -> None:
    """Take from the widest column until the row fits or nothing can be spared."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - available
    while excess > 0:
        widest = max(range(len(widths)), key=widths.__getitem__)
        spare = widths[widest] - COLUMN_WIDTH_MIN
        if spare <= 0:
            return
        others = [width for number, width in enumerate(widths) if number != widest]
        taken = min(excess, spare, max(1, widths[widest] - max(others, default=0)))
        widths[widest] -= taken
        excess -= taken


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def _coloured() -> bool:
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
