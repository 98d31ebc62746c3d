"""Draws the charts of docs/speed.md from the evidence beside it: python3 tools/speed_charts.py

Plain SVG: no script runs, and whoever reads it in the dark sees it so. Bars are medians, the thin line is the range of
the rounds. What is better is said in words, since it is the longer bar for some and the shorter for others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PEERS = DOCS / "evidence" / "peers-quiet-2026-11-30.json"
PICTURE = DOCS / "pictures" / "speed-peers.svg"

NAMES = {
    ("fencerow", "postgresql"): "Fencerow, PostgreSQL",
    ("pgqueuer", "postgresql"): "pgqueuer",
    ("graphile", "postgresql"): "graphile-worker",
    ("fencerow", "sqlite"): "Fencerow, SQLite",
    ("hueysqlite", "sqlite"): "Huey, SQLite",
}
QUESTIONS = (
    ("single_s", "Submits, one at a time, a second: more is better"),
    ("bulk_s", "Submits in bulk, a second: more is better"),
    ("drain_s", "Drain, jobs a second: more is better"),
    ("lat_p50_ms", "Submit to start, p50, ms: less is better"),
    ("lat_p99_ms", "Submit to start, p99, ms: less is better"),
    ("worker_cpu_us_job", "Worker's processor, us a job: less is better"),
)
COLUMNS, CHART_PX, LABEL_PX, VALUE_PX = 2, 430, 140, 60
ROW_PX, HEAD_PX, GAP_PX = 20, 28, 16
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 } .head { font-weight: 600 }
.bar { fill: #b9bec6 } .own { fill: #2f7d4f } .range { stroke: #222; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .bar { fill: #5a616b } .own { fill: #58b27f } .range { stroke: #ddd }
}
"""


@dataclass(frozen=True)
class Bar:
    """One system's answer to one question."""

    name: str
    median: float
    low: float
    high: float


def bars(evidence: dict[str, Any], question: str) -> list[Bar]:
    found = {(each["peer"], each["on"]): each[question] for each in evidence["results"]}
    return [
        Bar(name, of["median"], of["min"], of["max"]) for key, name in NAMES.items() if (of := found.get(key))
    ]


def chart(head: str, found: Sequence[Bar], left: float, top: float) -> Iterator[str]:
    """One question: its head, and a bar for each system, with its range and its number."""
    yield f'<text class="head" x="{left}" y="{top + 14}">{escape(head)}</text>'
    scale = (CHART_PX - LABEL_PX - VALUE_PX) / max(each.high for each in found)
    for at, each in enumerate(found):
        y = top + HEAD_PX + at * ROW_PX
        x, middle = left + LABEL_PX, y + 7
        kind = "own" if each.name.startswith("Fencerow") else "bar"
        yield f'<text x="{left}" y="{y + 11}">{escape(each.name)}</text>'
        yield f'<rect class="{kind}" x="{x}" y="{y}" width="{each.median * scale:.1f}" height="14"/>'
        low, high = (x + value * scale for value in (each.low, each.high))
        yield f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
        yield f'<text x="{high + 5:.1f}" y="{y + 11}">{number(each.median)}</text>'


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def drawn(evidence: dict[str, Any]) -> str:
    height_px = HEAD_PX + len(NAMES) * ROW_PX + GAP_PX
    rows = -(-len(QUESTIONS) // COLUMNS)
    width, height = COLUMNS * (CHART_PX + GAP_PX), rows * height_px
    parts: list[str] = []
    for at, (question, head) in enumerate(QUESTIONS):
        left, top = at % COLUMNS * (CHART_PX + GAP_PX), at // COLUMNS * height_px
        parts += chart(head, bars(evidence, question), left, top)
    told = "Medians and ranges of five rounds: Fencerow beside pgqueuer, graphile-worker and Huey"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{told}</title>\n<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(json.loads(PEERS.read_text("utf-8"))), "utf-8")
