"""What each minute of `.ci/run` buys: writes the table of CONTRIBUTING.md from what its last run has left.

Run it after a `.ci/run` on a quiet machine: .venv/bin/python -m tools.minutes
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".fencerow" / "ci"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- minutes: written by tools/minutes.py -->\n", "<!-- end of minutes -->\n"
FOLDERS_MIN_S = 10.0  # what costs less stands together in one row


def table(kept: Path = KEPT) -> str:
    """The steps with their minutes, and the folders of tests with the seconds of a processor that they cost."""
    steps = [line.split("\t") for line in (kept / "steps.tsv").read_text("utf-8").splitlines()]
    minutes = sum(int(seconds) for seconds, _ in steps) / 60
    return "\n".join(
        (
            "| step | minutes |",
            "|---|---|",
            *(f"| {name} | {int(seconds) / 60:.1f} |" for seconds, name in steps),
            f"| together | {minutes:.1f} |",
            "",
            "| tests | seconds of a processor | through PgBouncer |",
            "|---|---|---|",
            *_folders(_costs(kept / "tests.json"), _costs(kept / "pooled.json")),
            "",
        )
    )


def write(page: Path = PAGE, kept: Path = KEPT) -> None:
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table(kept)}\n{END}{after}", "utf-8")


def _costs(path: Path) -> dict[str, float]:
    """Nothing where the run ended before that step."""
    if not path.exists():
        return {}
    found: dict[str, float] = json.loads(path.read_text("utf-8"))
    return found


def _folders(tests: dict[str, float], pooled: dict[str, float]) -> Iterator[str]:
    shown = [name for name in tests if tests[name] + pooled.get(name, 0.0) >= FOLDERS_MIN_S]
    for name in shown:
        again = pooled.get(name)
        yield f"| `{name}` | {tests[name]:.0f} | {'' if again is None else f'{again:.0f}'} |"
    rest, rest_pooled = (
        sum(cost for name, cost in costs.items() if name not in shown) for costs in (tests, pooled)
    )
    yield f"| all others | {rest:.0f} | {f'{rest_pooled:.0f}' if pooled else ''} |"
    yield f"| together | {sum(tests.values()):.0f} | {f'{sum(pooled.values()):.0f}' if pooled else ''} |"


if __name__ == "__main__":
    write()
