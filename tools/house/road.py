"""How far the road is open: `python3 dev.py house` prints what a new feature meets, and what it shall be.

These are counts, no checks: one that is not at its goal stops nobody. What must hold is in tests/house/test_road.py,
where a feature is added that touches no file of the core. Which goals stand at what was reached, and why, is said in
docs/decisions/0137-how-far-the-road-is-open.md.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fencerow.core.store import store

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "fencerow"
CORE = SOURCES / "core"
FEATURES = re.compile(r"\b(exclusive|gate|gates|share|affinity|unique|handover)\b")
RAISES = re.compile(r"\battempt = (?:job\.)?attempt \+ 1\b")
FOLLOWS = re.compile(r"yield from keep_terms\(")
LINES_MAX = 350

TRIVIAL = """
import asyncio, sys
from fencerow import App
app = App("sqlite:///" + sys.argv[1])
@app.job
def nothing() -> None: ...

async def run() -> None:
    async with app, app.worker(slots=1):
        await (await nothing.asubmit()).aresult(timeout_s=60)

app.migrate()
asyncio.run(run())
below = ("fencerow.core", "fencerow.db")
print(sum(name.startswith("fencerow.") and not name.startswith(below) for name in sys.modules))
"""


def main() -> None:
    """Print each count: today, and the goal."""
    rows = list(counts())
    width = max(len(name) for name, _, _ in rows)
    for name, today, goal in rows:
        sys.stdout.write(f"{name:{width}}  {today:>16}  {goal:>12}\n")


def counts() -> Iterator[tuple[str, str, str]]:
    yield "how far the road is open", "today", "goal"
    named = [path for path in files(CORE, "*") if FEATURES.search(path.read_text("utf-8"))]
    yield "core files that name a feature", str(len(named)), "<= 10"
    yield "statements that raise `attempt`, per dialect", "; ".join(map(str, claims())), "1; 1"
    yield "sites that do what follows an insert", str(matches(FOLLOWS, "*.py")), "1"
    yield (
        "`snoozes_max` in SQL",
        str(sum(p.read_text().count("snoozes_max") for p in files(SOURCES, "*.sql"))),
        "<= 14",
    )
    yield "indexes on jobs; columns", "; ".join(map(str, of_jobs())), "<= 13; 51"
    raw, code = lines_of_core()
    yield "lines of the core; of these code", f"{raw}; {code}", "<= 26.9k; 18.0k"
    yield "modules above the core in a trivial worker", str(loaded()), "<= 86"
    names = Counter(name for path in files(SOURCES, "*.py") for name in classes(path))
    yield "class names that several share", str(sum(count > 1 for count in names.values())), "<= 25"
    long = [path for path in files(SOURCES, "*.py") if len(path.read_text("utf-8").splitlines()) > LINES_MAX]
    yield f"files of more than {LINES_MAX} lines", str(len(long)), "0"


def files(folder: Path, pattern: str) -> list[Path]:
    kinds = (".py", ".sql") if pattern == "*" else (pattern[1:],)
    return sorted(path for path in folder.rglob("*") if path.suffix in kinds)


def matches(found: re.Pattern[str], pattern: str) -> int:
    return sum(len(found.findall(path.read_text("utf-8"))) for path in files(CORE, pattern))


def claims() -> list[int]:
    """How many statements of each dialect begin an attempt, what they share written out."""
    both = (store.postgres_queries(), store.sqlite_queries())
    return [
        sum(any(RAISES.search(text) for text in query.statements) for query in each.values()) for each in both
    ]


def of_jobs() -> tuple[int, int]:
    """How many indexes and columns the live jobs have on PostgreSQL."""
    shape = json.loads((CORE / "store" / "postgres" / "shape.json").read_text("utf-8"))
    own = sum(what.startswith("index") and re.search(r" ON (?:\w+\.)?jobs ", text) is not None
              for what, text in shape.items())  # fmt: skip
    of_constraints = sum(what.startswith("constraint jobs.") and text.startswith(("PRIMARY KEY", "EXCLUDE"))
                         for what, text in shape.items())  # fmt: skip
    return own + of_constraints, sum(what.startswith("column jobs.") for what in shape)


def lines_of_core() -> tuple[int, int]:
    """All lines, and those that are no blank, no comment and no docstring."""
    raw = code = 0
    for path in files(CORE, "*"):
        lines = path.read_text("utf-8").splitlines()
        raw += len(lines)
        prose = set(docstrings(path)) if path.suffix == ".py" else set()
        mark = "#" if path.suffix == ".py" else "--"
        code += sum(
            bool(line.strip()) and not line.strip().startswith(mark) and number not in prose
            for number, line in enumerate(lines, start=1)
        )
    return raw, code


def docstrings(path: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def classes(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name


def loaded() -> int:
    """In a process that submits and runs one job of no feature."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", TRIVIAL, f"{folder}/jobs.db"],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(SOURCES.parent)},
        )
    return int(done.stdout)


if __name__ == "__main__":
    main()
