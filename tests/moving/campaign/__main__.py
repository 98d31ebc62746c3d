"""Ten thousand live jobs move with workers on both sides, and the move is killed fifty times: each job runs once.

`python -m tests.moving.campaign --evidence FILE`; with `--unfenced` the file is not closed, which must be found,
and with `--unwatched` nothing finds it at the end, so the jobs that run twice are counted.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer
from tests.moving.campaign.play import play

SHOWN_MAX = 20


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.moving.campaign", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--unfenced", action="store_true", help="a control: nothing closes the file")
    parser.add_argument(
        "--unwatched", action="store_true", help="a control: nor is what came compared, so jobs run twice"
    )
    parser.add_argument("--evidence", type=Path)
    given = parser.parse_args(arguments)
    with PostgresServer(fast=True) as server, tempfile.TemporaryDirectory() as folder:
        url = server.create_role_and_schema()
        engine = PostgresEngine(url, store.postgres_queries())
        store.migrate(engine)
        engine.close()
        found = play(
            Path(folder),
            url,
            jobs=given.jobs,
            kills=given.kills,
            seed=given.seed,
            unfenced=given.unfenced,
            unwatched=given.unwatched,
        )
    count = len(found.wrong)
    told = {"seed": given.seed, **asdict(found), "wrong": found.wrong[:SHOWN_MAX], "wrong_count": count}
    text = json.dumps(told, indent=1) + "\n"
    sys.stdout.write(text)
    if given.evidence:
        given.evidence.write_text(text)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
