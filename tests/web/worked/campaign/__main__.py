"""`python -m tests.web.worked.campaign`: the campaign over both engines, and a file with what was found."""

from __future__ import annotations

import argparse
import json
import random
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from tests.kit.jobs import AnyEngine
from tests.proof.storm.evidence import ROOT, surroundings
from tests.web.worked.campaign.load import Found, run
from tests.web.worked.campaign.parties import Place

ENGINES = ("postgres", "sqlite")


def main(arguments: list[str]) -> int:
    """0 when every promise held and as many workers were killed as asked for; 1 otherwise."""
    given = _parsed(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that servers are put away
    kinds = ENGINES if given.engine is None else (given.engine,)
    evidence: dict[str, Any] = {**surroundings(kinds), "command": ["worked", *arguments], "seed": given.seed}
    evidence["campaigns"], good, began = [], True, time.monotonic()
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="fencerow-worked-", dir="/dev/shm") as folder:
            found = (_on_postgres if kind == "postgres" else _on_sqlite)(given, Path(folder))
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


def _on_postgres(given: argparse.Namespace, folder: Path) -> Found:
    with PostgresServer(fast=True) as server:
        url = server.create_role_and_schema(role="app", database="worked")
        return _on(PostgresEngine(url, store.postgres_queries()), url, given, folder)


def _on_sqlite(given: argparse.Namespace, folder: Path) -> Found:
    engine = SqliteEngine(folder / "worked.db", store.sqlite_queries())
    return _on(engine, f"sqlite:///{folder / 'worked.db'}", given, folder)


def _on(engine: AnyEngine, url: str, given: argparse.Namespace, folder: Path) -> Found:
    place = Place(url, *_free_ports(), folder / "endpoints.log", given.seed)
    try:
        store.migrate(engine)
        return run(engine, place, jobs=given.jobs, kills=given.kills)
    finally:
        engine.close()


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.web.worked.campaign", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2_000, help="on each engine (2000)")
    parser.add_argument(
        "--kills", type=int, default=200, help="of workers and endpoints, by SIGKILL, on each engine (200)"
    )
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--evidence", type=Path, default=ROOT / ".fencerow" / "worked.json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
