"""Writes the figures of an evidence file into docs/speed.md, with the circumstances under which they were measured.

fencerow bench --save evidence.json
python3 tools/speed.py evidence.json [more.json]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "speed.md"
BEGIN, END = "<!-- figures: written by tools/speed.py -->\n", "<!-- end of figures -->\n"


def main(files: list[str]) -> None:
    """Replace the figures of the page by those of these files."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = [section(json.loads(Path(file).read_text("utf-8"))) for file in files]
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after, "utf-8")


def section(evidence: dict[str, Any]) -> str:
    """One run: where, how, and its tables."""
    load = f"load {evidence['load']:.1f} at its begin, {evidence['load_at_end']:.1f} at its end"
    when = f"{evidence['at'][:10]}, commit {evidence['commit']}"
    where = f"{evidence['machine']}, Python {evidence['python']}"
    lines = [f"`{' '.join(evidence['command'])}`, {when}, {where}, {load}.", ""]
    for database in dict.fromkeys(each["database"] for each in evidence["figures"]):
        lines += [f"**{database}**", "", "| question | ours | beside | ratio |", "|---|---|---|---|"]
        lines += rows(each for each in evidence["figures"] if each["database"] == database)
        lines.append("")
    return "\n".join(lines)


def rows(figures: Iterable[dict[str, Any]]) -> list[str]:
    """One line of the table for each figure."""
    return [
        f"| {each['question']}: {each['what']} | {number(each['ours'])} {each['unit']} | "
        + (
            f"{each['beside']}: {number(each['other'])} | {each['ratio']:.2f} |"
            if each["beside"]
            else "– | – |"
        )
        for each in figures
    ]


def number(value: float) -> str:
    """Three digits, or the whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main(sys.argv[1:])
