"""Which tests are dear: `python -m tools.dear COSTS [--over SECONDS]` prints what tests/kit/dear.txt should name.

COSTS is what `dev.py test --cost-of-each COSTS` wrote. Dear is what costs more than so many seconds of a processor, but

- what a row of docs/proof.md names,
- what is played all the same: a line of dear.txt that begins with "+ ", and
- the cheapest test of each file on each engine: no file is without a test in the gate.

Where a test is dear on PostgreSQL alone, its line ends with [postgres]: the gate plays it on SQLite.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
OVER_S = 0.1
NAMED = re.compile(r"(tests/[\w/]+\.py)((?:::\w+)?)")
POSTGRES, OTHER = "[postgres]", ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.dear", description=__doc__)
    parser.add_argument("costs", type=Path, nargs="+")
    parser.add_argument("--over", type=float, default=OVER_S, help=f"seconds of a processor ({OVER_S})")
    given = parser.parse_args(arguments)
    lines = [line for file in given.costs for line in file.read_text("utf-8").splitlines()]
    sys.stdout.writelines(f"{each}\n" for each in dear(lines, shown(), given.over))
    return 0


def shown() -> set[str]:
    """What is played whatever it costs: it shows a promise, or somebody has said so."""
    proof = (ROOT / "docs" / "proof.md").read_text("utf-8")
    list_of_dear = (ROOT / "tests" / "kit" / "dear.txt").read_text("utf-8").splitlines()
    said = {line.removeprefix("+ ") for line in list_of_dear if line.startswith("+ ")}
    return said | {"".join(found) for found in NAMED.findall(proof)}


def dear(lines: list[str], named: set[str], over_s: float) -> list[str]:
    """The names, with the engine where it is one of two."""
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines:
        seconds, _, test = line.partition(" ")
        name, _, words = test.partition("[")
        engine = POSTGRES if {"postgres", "pg"} & set(words.rstrip("]").split("-")) else OTHER
        costs[name, engine].append(float(seconds))
    # One case of many has paid for what a whole module uses.
    usual = {each: median(found) for each, found in costs.items()}
    cheapest: dict[tuple[str, str], tuple[str, str]] = {}
    for each in sorted(usual, key=lambda test: usual[test], reverse=True):
        cheapest[each[0].partition("::")[0], each[1]] = each
    kept = {*cheapest.values(), *(each for each in usual if each[0] in named)}
    out = {each for each, seconds in usual.items() if seconds > over_s and each not in kept}
    both = {name for name, engine in out if {(name, POSTGRES), (name, OTHER)} & usual.keys() <= out}
    return sorted({name if name in both else name + engine for name, engine in out})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
