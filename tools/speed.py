"""Writes the figures of an evidence file into docs/speed.md, with the circumstances under which they were measured.

fencerow bench --save evidence.json
python3 tools/speed.py evidence.json [more.json]

What the files answer replaces what the page said of these questions and this database; its other figures stay.
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
    """Put the figures of these files in the place of those that answer the same questions."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    old, _, after = rest.partition(END)
    found = [json.loads(Path(file).read_text("utf-8")) for file in files]
    parts = [section(evidence) for evidence in found]
    parts += kept(old, {question for evidence in found for question in answered(evidence)})
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after, "utf-8")


def answered(evidence: dict[str, Any]) -> set[tuple[str, str]]:
    """Which questions a run answers, of which kind of database (its first word)."""
    return {(each["database"].split()[0], each["question"]) for each in evidence["figures"]}


def kept(old: str, replaced: set[tuple[str, str]]) -> list[str]:
    """The sections of the page without the rows that these questions replace."""
    sections = []
    for each in old.strip("\n").split("\n`fencerow bench"):
        if lines := without(each, replaced):
            head = "" if each.startswith("`fencerow bench") else "`fencerow bench"
            sections.append(head + "\n".join(lines) + "\n")
    return sections


def without(section: str, replaced: set[tuple[str, str]]) -> list[str]:
    """The lines of a section but for the replaced rows; none where no row is left."""
    database, lines, rows_left = "", [], 0
    for line in section.strip("\n").split("\n"):
        if line.startswith("**"):
            database = line.strip("*").split()[0]
        is_row = line.startswith("| ") and ": " in line
        if is_row and (database, line[2:].partition(":")[0]) in replaced:
            continue
        rows_left += is_row
        lines.append(line)
    return lines if rows_left else []


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
