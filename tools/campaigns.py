"""The campaigns, each short: a load, and faults drawn by chance. `dev.py prove` plays all of them.

    python -m tools.campaigns [NAME ...] [--evidence FOLDER]

What each found is kept in FOLDER/NAME.json. One that takes longer than its minutes has failed. Their long forms are the
same commands with more of everything; docs/evidence keeps the last ones.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".fencerow" / "prove"
EVIDENCE = "EVIDENCE"  # stands for the file


@dataclass(frozen=True)
class Campaign:
    """`words` come after `python -m`. On two quiet cores it takes at most a third of `minutes`."""

    name: str
    words: str
    minutes: int


# The only list. A new campaign is a line here.
CAMPAIGNS = (
    Campaign("storm", "tests.proof.storm --jobs 12000 --faults 600 --evidence EVIDENCE", 45),
    Campaign("bus", "tests.events.bus --evidence EVIDENCE", 15),
    Campaign("flows", "tests.flows.campaign --flows 100 --kills 30 --evidence EVIDENCE", 9),
    Campaign("worked", "tests.web.worked.campaign --jobs 100 --kills 10 --evidence EVIDENCE", 12),
    Campaign("moving", "tests.moving.campaign --jobs 2000 --kills 10 --evidence EVIDENCE", 9),
    Campaign("relay", "tests.relay.campaign --events 300 --faults 10 --evidence EVIDENCE", 9),
    Campaign("interactions", "tests.web.discord.campaign --interactions 100 --evidence EVIDENCE", 9),
    Campaign("clocks", "tests.schedules.walk EVIDENCE 10", 9),
    Campaign("attack", "tools.attack corpus --limit-s 60 --save EVIDENCE", 9),
    Campaign("slow", "tools.attack slow --engine sqlite --save EVIDENCE", 9),
    Campaign("huge", "tools.attack huge --engine sqlite --save EVIDENCE", 9),
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(each.name for each in CAMPAIGNS))
    parser.add_argument("--evidence", type=Path, default=KEPT, metavar="FOLDER")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - {each.name for each in CAMPAIGNS}:
        parser.error(
            f"there is no {', '.join(sorted(unknown))}; there are {', '.join(each.name for each in CAMPAIGNS)}"
        )
    given.evidence.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in CAMPAIGNS if each.name in given.names or not given.names]
    failed = [each.name for each in chosen if not holds(each, given.evidence)]
    print(f"failed: {', '.join(failed)}" if failed else f"all held; evidence: {given.evidence}", flush=True)
    return 1 if failed else 0


def holds(campaign: Campaign, folder: Path) -> bool:
    """Play it in a session of its own: when its time is over, all that it started is ended with it."""
    file, log = (folder / f"{campaign.name}.{kind}" for kind in ("json", "log"))
    began = time.monotonic()
    file.unlink(missing_ok=True)  # one of an earlier run is no evidence of this one
    words = [str(file) if word == EVIDENCE else word for word in campaign.words.split()]
    with log.open("wb") as said:
        run = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = run.wait(campaign.minutes * 60)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        end(run)
    well = code == 0 and file.exists()
    told = "holds" if well else f"FAILED with code {code}; what it said: {log}"
    print(f"== {campaign.name}: {told}, {time.monotonic() - began:.0f} s", flush=True)
    return well


def end(run: subprocess.Popen[bytes]) -> None:
    """What it left behind ends with it."""
    try:
        os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        run.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
