"""Writes the table of docs/guide/metrics.md from the names in the code: python3 -m tools.metrics"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fencerow.metrics.names import COUNTED, OF_DATABASE, OF_WORKER, Metric

GUIDE = Path(__file__).parent.parent / "docs" / "guide" / "metrics.md"
BEGIN, END = "<!-- metrics: written by tools/metrics.py -->\n", "<!-- end of metrics -->\n"


def table() -> str:
    """The metrics, those that processes count first."""
    parts = (
        ("What a process counts of its own work. Sum these over all processes.", COUNTED),
        ("How the worker of a process is. Sum these, too.", OF_WORKER),
        (
            "What one look at the database found. Every process says the same: take the maximum, never the sum.",
            OF_DATABASE,
        ),
    )
    return "\n".join(_part(*each) for each in parts)


def written(page: str) -> str:
    """The page with the table of now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def _part(head: str, metrics: Sequence[Metric]) -> str:
    lines = [f"\n{head}\n\n| name | kind | labels | meaning |\n|---|---|---|---|\n"]
    for each in metrics:
        labels = ", ".join(f"`{label}`" for label in each.labels) or "–"
        lines.append(f"| `{each.name}` | {each.kind} | {labels} | {each.help} |\n")
    return "".join(lines)


if __name__ == "__main__":
    GUIDE.write_text(written(GUIDE.read_text("utf-8")), "utf-8")
