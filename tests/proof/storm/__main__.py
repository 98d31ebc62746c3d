"""The long form, `python3 dev.py storm`: a storm over both engines, and a file with what was found."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.proof.storm.bugs import BUGS, found_wrong
from tests.proof.storm.evidence import ROOT, complaints, facts, line, surroundings
from tests.proof.storm.plan import CONTROL_SEEDS, Plan, control, planned
from tests.proof.storm.storm import Report, weather

ENGINES = ("postgres", "sqlite")


def main(arguments: list[str]) -> int:
    """0 when every promise held and every control turned red; 1 otherwise."""
    given = _parsed(arguments)
    signal.signal(
        signal.SIGTERM, lambda number, _: sys.exit(128 + number)
    )  # so that disks and servers are put away
    kinds = ENGINES if given.engine is None else (given.engine,)
    started = time.monotonic()
    evidence: dict[str, Any] = {
        **surroundings(kinds),
        "command": ["storm", *map(_without_folder, arguments)],
        "seed": given.seed,
    }
    evidence["controls"], evidence["storms"] = [], []
    good = True
    for kind in kinds:
        for bug in BUGS:
            red = _found_out(kind, given.seed, bug)
            found = len(found_wrong(red.books.wrong, bug))
            evidence["controls"].append({"bug": bug, "red": found > 0, "found": found, **facts(red)})
            _say(f"control, {bug} on {kind}: {'red' if found else 'GREEN: the storm proves nothing'}")
            good = good and found > 0
    for kind in kinds:
        report = _blown(kind, planned(kind, given.jobs, given.faults, given.seed, alone=len(kinds) == 1))
        evidence["storms"].append(facts(report))
        _say(line(report))
        for complaint in complaints(report):
            _say(f"  {complaint}")
        good = good and not complaints(report)
    evidence["passed"], evidence["duration_s"] = good, round(time.monotonic() - started, 1)
    given.evidence.parent.mkdir(parents=True, exist_ok=True)
    given.evidence.write_text(json.dumps(evidence, indent=1) + "\n")
    _say(f"{'every promise held' if good else 'NOT GOOD'}; written to {given.evidence}")
    return 0 if good else 1


def _found_out(kind: str, seed: int, bug: str) -> Report:
    """The first control in which the bug was found, or the last of them: what runs beside what is chance."""
    tries = (_blown(kind, control(kind, each, bug)) for each in range(seed, seed + CONTROL_SEEDS))
    for report in tries:
        if found_wrong(report.books.wrong, bug):
            break
    return report


def _blown(kind: str, plan: Plan) -> Report:
    """One storm; its records are kept when something was wrong that should not be."""
    folder = Path(tempfile.mkdtemp(prefix="fencerow-storm-"))
    report = weather(kind, plan, folder)
    if complaints(report) and not plan.bug:
        _say(f"the records of the processes are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return report


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py storm", description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000, help="of both engines together (50000)")
    parser.add_argument("--faults", type=int, default=2_000, help="confirmed ones, of both together (2000)")
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--evidence", type=Path, default=ROOT / ".fencerow" / "storm.json")
    return parser.parse_args(arguments)


def _without_folder(argument: str) -> str:
    """Where somebody keeps the evidence is of no interest in it."""
    return argument.rpartition("/")[2] if argument.startswith("/") else argument


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
