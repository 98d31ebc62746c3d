"""Numbers, times and data as pages write them. Pure functions of what was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from markupsafe import Markup, escape

from fencerow.command.times import Times, exact
from fencerow.web.dashboard.redacting import Redacted

NOTHING = "–"
PIECES_MAX = 4_000
TEXT_MAX = 20_000
SHORT = 60
BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def number(value: float | None) -> str:
    """`1,204`; a missing one is –."""
    return NOTHING if value is None else f"{value:,}"


def counted(value: int, most: int) -> str:
    """A count that was not gone on with above `most`: `10,000+`."""
    return f"{most:,}+" if value > most else f"{value:,}"


def span(seconds: float | None) -> str:
    """`0.4 s`, `41 s`, `26 min`, `8.2 h`, `3 days`; a missing one is –."""
    if seconds is None:
        return NOTHING
    size = abs(seconds)
    if size < 9.95:
        return f"{size:.1f} s"
    if size < 120:
        return f"{size:.0f} s"
    if size < 7_200:
        return f"{size / 60:.0f} min"
    return f"{size / 3600:.1f} h" if size < 172_800 else f"{size / 86_400:.0f} days"


def ago(us: int, now_us: int) -> str:
    """`57 min ago`, `in 3 min`, `now`: as the command writes it."""
    return str(Times(now_us).when(us))


def utc(us: int) -> str:
    """The exact instant for people: `2026-11-22 14:32:10 UTC`."""
    return exact(us).replace("T", " ").replace("Z", " UTC")


def iso(us: int) -> str:
    """The exact instant for programs, to the millisecond."""
    return exact(us, "milliseconds")


def bytes_told(count: int | None) -> str:
    """`312 B`, `1.2 MiB`."""
    if count is None:
        return NOTHING
    for size, unit in BYTES:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def data(value: Any) -> Markup:
    """Data as indented JSON, with what is hidden marked. What is very long is cut, and says so."""
    pieces = list(islice(_pieces(value, 0), PIECES_MAX + 1))
    cut = len(pieces) > PIECES_MAX
    text = Markup("").join(pieces[:PIECES_MAX])
    return text + Markup('\n<span class="veil">cut here: it is longer</span>') if cut else text


def coded(text: str) -> Markup:
    """A text in which `what stands so` is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(each) if place % 2 else escape(each)
        for place, each in enumerate(parts)
    )


def one_line(value: Any, length_max: int = 120) -> str:
    """Data as short JSON, for a cell of a table."""
    text = "".join(each.unescape() for each in islice(_pieces(value, None), 60))
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"


def _pieces(value: Any, depth: int | None) -> Iterator[Markup]:
    inner = None if depth is None else depth + 1
    match value:
        case Redacted():
            yield (
                Markup('<span class="veil">{}</span>').format(str(value))
                if depth is not None
                else escape("(hidden)")
            )
        case Mapping():
            named = [(_plain(str(name)) + ": ", each) for name, each in value.items()]
            yield from _group("{", "}", named, inner)
        case list() | tuple() if depth is not None and _is_short(value):
            yield from _pieces(value, None)
        case list() | tuple():
            yield from _group("[", "]", [("", each) for each in value], inner)
        case _:
            yield escape(_plain(value))


def _is_short(value: Sequence[Any]) -> bool:
    """A few numbers and short texts stand in one line."""
    is_plain = all(not isinstance(each, list | tuple | Mapping | Redacted) for each in value)
    return is_plain and sum(len(str(each)) + 4 for each in value[:20]) < SHORT and len(value) < 20


def _group(
    opening: str, closing: str, items: Sequence[tuple[str, Any]], inner: int | None
) -> Iterator[Markup]:
    yield escape(opening)
    for place, (name, value) in enumerate(items):
        yield escape(("," if place else "") + (" " if place and inner is None else "") + _break(inner) + name)
        yield from _pieces(value, inner)
    yield escape((_break(None if inner is None else inner - 1) if items else "") + closing)


def _break(depth: int | None) -> str:
    return "" if depth is None else "\n" + "  " * depth


def _plain(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text):,} characters)"
