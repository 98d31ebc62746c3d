"""Attacks a real gateway: `python -m tools.attack ATTACK [--engine ENGINE] [--save FILE]`; `--help` names them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.proof.storm.evidence import surroundings
from tools.attack.corpus import attacked
from tools.attack.huge import swamped
from tools.attack.schema import examined
from tools.attack.slow import slowed


def main(arguments: list[str]) -> int:
    """Play the attacks, print what came of them, keep it; 1 if something gave way."""
    parser = argparse.ArgumentParser(prog="python -m tools.attack", description=__doc__)
    parser.add_argument("attack", choices=list(ATTACKS))
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--limit-s", type=float, default=3600.0, help="begin nothing after so many seconds")
    parser.add_argument(
        "--seed", type=int, default=30, help="of the order of chance in which requests are sent"
    )
    parser.add_argument("--save", type=Path)
    given = parser.parse_args(arguments)
    engines = given.engine or ["sqlite", "postgres"]
    found: dict[str, Any] = {
        **surroundings(engines),
        "command": ["python", "-m", "tools.attack", *map(_name, arguments)],
        "attack": given.attack,
        "seed": given.seed,
        "engines": {engine: ATTACKS[given.attack](engine, given.limit_s, given.seed) for engine in engines},
    }
    written = json.dumps(found, indent=1)
    print(written)
    if given.save:
        given.save.write_text(written + "\n")
    return 0 if all(each["stands"] for each in found["engines"].values()) else 1


def _name(argument: str) -> str:
    """Where somebody keeps the evidence is of no interest in it."""
    return argument.rpartition("/")[2]


ATTACKS = {"corpus": attacked, "schemathesis": examined, "slow": slowed, "huge": swamped}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
