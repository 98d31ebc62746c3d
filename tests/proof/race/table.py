"""docs/races.md, from the evidence of a long run: `python -m tests.proof.race.table docs/evidence/races-….json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.proof.race.named import ABSENT, RACES, WHOLE

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "races.md"
MODES = {"plain": "whole statements", "held": "held", "sqlite": "SQLite"}
HEAD = """\
# Races, and how many of their orders were played

Each line is one race. Its actors do what workers, clients, reapers and operators do, on a real database, one step at a
time, in every order. After each order the race's own check and the invariants of all jobs must hold. The numbers are
from [{file}]({file}); `python -m tests.proof.race.table` makes this
page from them.

- **Whole statements**: on PostgreSQL each statement is one step. **Held**: a statement that changes data is two steps.
  The first takes its snapshot, the second makes the change. **SQLite**: each transaction is one step, because the file
  has one writer.
- A number alone means that **all** orders were played. Of several orders with the same effect, one is played
  ([0033](decisions/0033-orders-that-come-to-the-same.md)). `300 of ≈ 40,000` is a sample that a fixed seed draws.
- **Red** counts the controls: how often the race went wrong, as it should, when a guard was removed or done in the
  wrong order.
- Every run of the tests plays the races with a star, with whole statements: up to 24 orders of each, which are all of
  most. `python3 dev.py prove` plays all, `python3 dev.py race --long --evidence FILE` with held statements, too.
  The races have the numbers of the design.

Run on {machine}, {cores} cores, {postgres}, SQLite {sqlite}, Python {python}, commit {commit};
{minutes} minutes of playing.
"""


def page(evidence: dict[str, Any], file: str) -> str:
    """The whole page."""
    facts = evidence["explored"]
    machine = evidence["machine"]
    parts = [
        HEAD.format(
            file=file,
            machine=machine["system"],
            cores=machine["cores"],
            postgres=evidence["postgres"],
            sqlite=evidence["sqlite"],
            python=evidence["python"],
            commit=evidence["commit"][:12],
            minutes=round(sum(fact["seconds"] for fact in facts) / 60),
        )
    ]
    for number, what in RACES.items():
        mine = [fact for fact in facts if number in fact.get("named", ())]
        star = " \\*" if number in WHOLE else ""
        parts.append("\n".join([f"## {number}. {what}{star}\n", *_table(mine), *_absent(number)]))
    rest = [f"- {number}: {why}." for number, why in ABSENT.items() if number not in RACES]
    parts.append("\n".join(["## No races\n", *rest]) + "\n")
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _table(facts: list[dict[str, Any]]) -> list[str]:
    lines = [f"| race | {' | '.join(MODES.values())} | red |", "|---|" + "---:|" * (len(MODES) + 1)]
    for scenario in dict.fromkeys(fact["scenario"] for fact in facts):
        mine = [fact for fact in facts if fact["scenario"] == scenario]
        races = [fact for fact in mine if fact["kind"] == "race"]
        cells = [_cell(fact for fact in races if fact["mode"] == mode) for mode in MODES]
        red = sum(fact["kind"] == "control" for fact in mine)
        lines.append(f"| {scenario} | {' | '.join(cells)} | {red or ''} |")
    return lines


def _cell(facts: Iterable[dict[str, Any]]) -> str:
    found = list(facts)
    if not found:
        return ""
    played, total = (max(fact[key] for fact in found) for key in ("played", "total"))
    return f"{played:,}" if played == total else f"{played:,} of ≈ {total:,}"


def _absent(number: int) -> list[str]:
    return [f"\n{ABSENT[number].capitalize()}."] if number in ABSENT else []


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]).resolve()
    PAGE.write_text(page(json.loads(path.read_text()), path.relative_to(DOCS).as_posix()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
