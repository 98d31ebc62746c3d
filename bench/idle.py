"""What does a worker cost that has nothing to do?

    python bench/idle.py [seconds] [postgres|sqlite] [--save FILE]

One worker in a process of its own, after it has settled; told are the seconds of a processor that it uses in a minute
and its operations in a second, without the renewals of its lease. A worker whose wings have rows costs more:
`bench/steps.py` has sleeping jobs.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from fencerow.bench.evidence import keep
from fencerow.bench.member import member
from fencerow.bench.place import private_place

SECONDS, ROUNDS = 20.0, 3
SETTLE_S = 6.0
ENGINES = ("postgres", "sqlite")


def idle(kind: str, seconds: float) -> list[dict[str, Any]]:
    """The rounds of one worker; the first, in which it settles, is left out."""
    with private_place(kind) as place, member(place, "serve") as worker:
        worker.ask(ask="idle", seconds=SETTLE_S)
        return [worker.ask(ask="idle", seconds=seconds) for _ in range(ROUNDS)]


def main() -> None:
    parser = argparse.ArgumentParser(description="What does an idle worker cost?")
    parser.add_argument("seconds", type=float, nargs="?", default=SECONDS)
    parser.add_argument("engines", nargs="*", default=ENGINES)
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    found = {kind: idle(kind, asked.seconds) for kind in asked.engines}
    for kind, rounds in found.items():
        cpu = sorted(each["cpu_s_per_minute"] for each in rounds)
        operations = statistics.median(each["operations_per_s"] for each in rounds)
        print(
            f"{kind}: {statistics.median(cpu):.3f} s of a processor a minute ({cpu[0]:.3f} to {cpu[-1]:.3f}), "
            f"{operations:.2f} operations a second"
        )
    keep(asked.save, {"seconds": asked.seconds, "engines": found})


if __name__ == "__main__":
    main()
