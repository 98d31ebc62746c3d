"""The long form, `python3 dev.py bus`: the load over both engines, and a file with what was found."""

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

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from tests.events.bus.load import run
from tests.events.bus.plan import Plan
from tests.events.bus.verdict import Verdict, judge
from tests.proof.storm.evidence import ROOT, surroundings

ENGINES = ("postgres", "sqlite")


def main(arguments: list[str]) -> int:
    """0 when every promise held and the plain reader on PostgreSQL lost events; 1 otherwise."""
    given = _parsed(arguments)
    signal.signal(
        signal.SIGTERM, lambda number, _: sys.exit(128 + number)
    )  # so that servers and processes are put away
    kinds = ENGINES if given.engine is None else (given.engine,)
    evidence: dict[str, Any] = {**surroundings(kinds), "command": ["bus", *arguments], "seed": given.seed}
    evidence["loads"], good, began = [], True, time.monotonic()
    for kind in kinds:
        folder = Path(tempfile.mkdtemp(prefix="fencerow-bus-", dir="/dev/shm" if kind == "sqlite" else None))
        found = _on_postgres(given, folder) if kind == "postgres" else _on_sqlite(given, folder)
        shutil.rmtree(folder)
        red = kind == "sqlite" or found.plain_lost > 0
        good = good and not found.wrong and red
        evidence["loads"].append({"engine": kind, **found.facts, "wrong": found.wrong})
        sys.stdout.write(f"{kind}: {json.dumps(found.facts)}\n")
        for each in [
            *found.wrong,
            *([] if red else ["the plain reader lost nothing: the load proves nothing"]),
        ]:
            sys.stdout.write(f"  {each}\n")
    evidence["passed"], evidence["duration_s"] = good, round(time.monotonic() - began, 1)
    given.evidence.parent.mkdir(parents=True, exist_ok=True)
    given.evidence.write_text(json.dumps(evidence, indent=1) + "\n")
    sys.stdout.write(f"{'every promise held' if good else 'NOT GOOD'}; written to {given.evidence}\n")
    return 0 if good else 1


def _on_postgres(given: argparse.Namespace, folder: Path) -> Verdict:
    with PostgresServer(fast=True) as server:
        url = server.create_role_and_schema(role="app", database="bus")
        engine = PostgresEngine(url, store.postgres_queries())
        store.migrate(engine)
        engine.close()
        return judge(run(_plan(given, url, folder, given.publishers)))


def _on_sqlite(given: argparse.Namespace, folder: Path) -> Verdict:
    engine = SqliteEngine(folder / "bus.db", store.sqlite_queries())
    store.migrate(engine)
    engine.close()
    return judge(run(_plan(given, f"sqlite:///{folder / 'bus.db'}", folder, given.publishers)))


def _plan(given: argparse.Namespace, url: str, folder: Path, publishers: int) -> Plan:
    return Plan(
        url=url,
        folder=str(folder),
        events=given.events,
        publishers=publishers,
        drainers=given.drainers,
        kills=given.kills,
        seed=given.seed,
    )


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bus", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="committed ones, on each engine (20000)")
    parser.add_argument("--publishers", type=int, default=40)
    parser.add_argument("--drainers", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10, help="of drainers, by SIGKILL (10)")
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--evidence", type=Path, default=ROOT / ".fencerow" / "bus.json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
