"""The long form, `python3 dev.py flows`: the campaign over both engines, and a file with what was found."""

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
from tests.flows.campaign.load import Found, run
from tests.kit.jobs import AnyEngine
from tests.proof.storm.evidence import ROOT, surroundings

ENGINES = ("postgres", "sqlite")


def main(arguments: list[str]) -> int:
    """0 when every promise held and as many workers were killed as asked for; 1 otherwise."""
    given = _parsed(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that servers are put away
    kinds = ENGINES if given.engine is None else (given.engine,)
    evidence: dict[str, Any] = {**surroundings(kinds), "command": ["flows", *arguments], "seed": given.seed}
    evidence["campaigns"], good, began = [], True, time.monotonic()
    for kind in kinds:
        found = _on_postgres(given) if kind == "postgres" else _on_sqlite(given)
        good = good and not found.wrong and found.kills == given.kills
        evidence["campaigns"].append({"engine": kind, **found.facts, "wrong": found.wrong[:100]})
        sys.stdout.write(f"{kind}: {json.dumps(found.facts)}\n")
        for each in found.wrong[:20]:
            sys.stdout.write(f"  {each}\n")
    evidence["passed"], evidence["duration_s"] = good, round(time.monotonic() - began, 1)
    given.evidence.parent.mkdir(parents=True, exist_ok=True)
    given.evidence.write_text(json.dumps(evidence, indent=1) + "\n")
    sys.stdout.write(f"{'every promise held' if good else 'NOT GOOD'}; written to {given.evidence}\n")
    return 0 if good else 1


def _on_postgres(given: argparse.Namespace) -> Found:
    with PostgresServer(fast=True) as server:
        url = server.create_role_and_schema(role="app", database="flows")
        return _on(PostgresEngine(url, store.postgres_queries()), url, given)


def _on_sqlite(given: argparse.Namespace) -> Found:
    folder = Path(tempfile.mkdtemp(prefix="fencerow-flows-", dir="/dev/shm"))
    try:
        engine = SqliteEngine(folder / "flows.db", store.sqlite_queries())
        return _on(engine, f"sqlite:///{folder / 'flows.db'}", given)
    finally:
        shutil.rmtree(folder)


def _on(engine: AnyEngine, url: str, given: argparse.Namespace) -> Found:
    try:
        store.migrate(engine)
        return run(engine, url, flows=given.flows, kills=given.kills, seed=given.seed)
    finally:
        engine.close()


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py flows", description=__doc__)
    parser.add_argument("--flows", type=int, default=1_000, help="of twelve jobs, on each engine (1000)")
    parser.add_argument("--kills", type=int, default=300, help="of workers, by SIGKILL, on each engine (300)")
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--evidence", type=Path, default=ROOT / ".fencerow" / "flows.json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
