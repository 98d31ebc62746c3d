"""The backlog over time and what is in use, as a chart: for a terminal, and as SVG. Text in, text out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from fencerow.command.layout import cut

BARS = " ▁▂▃▄▅▆▇█"
HEIGHT = 8
WIDTH, TALL, MARGIN = 720, 240, 56
BAR_PX, GAP_PX = 16, 8
NAME_PX = 200


def backlog_lines(backlog: Sequence[int], horizon_s: float, width: int) -> list[str]:
    """The backlog from left to right, the highest of each stretch, with its axes."""
    most = max(backlog, default=0)
    labels = len(f"{most:,}")
    columns = _columns(backlog, max(10, width - labels - 2))
    lines = []
    for row in reversed(range(HEIGHT)):
        label = f"{most:,}" if row == HEIGHT - 1 else "0" if row == 0 else ""
        cells = (_cell(value / most * HEIGHT - row if most else 0.0) for value in columns)
        lines.append(f"{label:>{labels}} ┤{''.join(cells).rstrip()}")
    return [
        *lines,
        f"{'':>{labels}} └{'─' * len(columns)}",
        f"{'':>{labels}}  0{_end(horizon_s, len(columns))}",
    ]


def used_lines(used: Mapping[str, float], width: int) -> list[str]:
    """A bar for each name: which share of its room was in use."""
    names = min(max(map(len, used), default=0), 30)
    room = max(10, width - names - 9)
    return [
        f"{cut(name, names):<{names}}  {'█' * round(min(share, 1) * room):<{room}} {share:>5.0%}"
        for name, share in used.items()
    ]


def svg(backlog: Sequence[int], used: Mapping[str, float], horizon_s: float, title: str) -> str:
    """The same as a picture: the backlog as a line, and below it a bar for each name."""
    most = max(*backlog, 1)
    step = (WIDTH - 2 * MARGIN) / max(1, len(backlog) - 1)
    points = " ".join(
        f"{MARGIN + number * step:.1f},{MARGIN + TALL * (1 - value / most):.1f}"
        for number, value in enumerate(backlog)
    )
    bottom = MARGIN + TALL
    height = bottom + 40 + len(used) * (BAR_PX + GAP_PX) + MARGIN // 2
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(MARGIN, 24, title, size=15),
        _text(MARGIN, MARGIN - 10, f"jobs that wait, at most {most:,}"),
        f'<path d="M{MARGIN} {MARGIN}V{bottom}H{WIDTH - MARGIN}" fill="none" stroke="#888888"/>',
        f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="2"/>',
        _text(MARGIN, bottom + 16, "0"),
        _text(WIDTH - MARGIN, bottom + 16, f"{horizon_s / 3600:g} h", anchor="end"),
        *_bars(used, bottom + 40),
        "</svg>",
    ]
    return "\n".join(drawn) + "\n"


def _bars(used: Mapping[str, float], top: int) -> list[str]:
    drawn: list[str] = []
    room = WIDTH - 2 * MARGIN - NAME_PX
    for number, (name, share) in enumerate(used.items()):
        y = top + number * (BAR_PX + GAP_PX)
        long = room * min(share, 1.0)
        colour = "#d1242f" if share >= 1 else "#1f6feb"
        drawn += [
            _text(MARGIN, y + 12, cut(name, 30)),
            f'<rect x="{MARGIN + NAME_PX}" y="{y}" width="{room}" height="{BAR_PX}" fill="#eeeeee"/>',
            f'<rect x="{MARGIN + NAME_PX}" y="{y}" width="{long:.1f}" height="{BAR_PX}" fill="{colour}"/>',
            _text(WIDTH - MARGIN + 6, y + 12, f"{share:.0%}"),
        ]
    return drawn


def _text(x: int, y: int, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def _columns(values: Sequence[int], width: int) -> list[int]:
    count = min(width, len(values))
    edges = [round(number * len(values) / count) for number in range(count + 1)] if count else []
    return [max(values[start:end]) for start, end in pairwise(edges)]


def _cell(filled: float) -> str:
    return BARS[min(8, max(0, math.ceil(filled * 8)))]


def _end(horizon_s: float, width: int) -> str:
    return f"{horizon_s / 3600:g} h".rjust(width - 1)
