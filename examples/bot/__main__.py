"""`python -m examples.bot deliver` replies with what has ended. Without a word it is the whole show."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from pathlib import Path

# Short enough that somebody can watch a lease run out; production has 30 s.
QUICK = {
    "FENCEROW_LEASE_S": "2",
    "FENCEROW_RENEW_S": "0.4",
    "FENCEROW_SWEEP_S": "0.4",
    "FENCEROW_POLL_MAX_S": "0.2",
    "FENCEROW_MUTEX_STALE_S": "2",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.bot", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["deliver", "show"], default="show")
    parser.add_argument("--url", help="of the show: the database; a SQLite file by default")
    wanted = parser.parse_args()
    if wanted.what == "deliver":
        from examples.bot.bot import deliver

        logging.basicConfig()
        asyncio.run(deliver())
        return 0
    from examples.bot.outside import stand_in
    from examples.bot.show import Show

    with tempfile.TemporaryDirectory(prefix="bot-") as name, stand_in() as discord:
        url = wanted.url or os.environ.get("FENCEROW_URL") or f"sqlite:///{name}/bot.db"
        os.environ |= QUICK | discord.environment | {"FENCEROW_URL": url}
        return Show(Path(name), discord).run()


if __name__ == "__main__":
    sys.exit(main())
