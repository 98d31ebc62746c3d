"""The whole show in one terminal: `python -m examples.probes`. It takes about a minute and needs no server."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

# Short enough that somebody can watch a lease run out; production has 30 s, and minutes for a probe.
QUICK = {
    "FENCEROW_LEASE_S": "3",
    "FENCEROW_RENEW_S": "0.5",
    "FENCEROW_SWEEP_S": "0.5",
    "FENCEROW_POLL_MAX_S": "0.2",
    "PROBES_SCALE": "0.02",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.probes", description=__doc__)
    parser.add_argument("--url", help="the app's database; a SQLite file by default")
    wanted = parser.parse_args()
    from examples.stage import outside

    with tempfile.TemporaryDirectory(prefix="probes-") as name, outside("examples.probes.outside") as url:
        begins = datetime.now(UTC) + timedelta(hours=6)  # a window that comes after all other scenes
        os.environ |= QUICK
        os.environ["FENCEROW_URL"] = wanted.url or f"sqlite:///{name}/probes.db"
        os.environ["PROBES_REGISTRY"] = url
        os.environ["PROBES_WINDOWS"] = f"{begins:%H:%M}-{begins + timedelta(minutes=20):%H:%M}"

        # Only now: the app reads its settings from the environment when it is imported.
        from examples.probes.show import Show

        logging.basicConfig(filename=f"{name}/show.log")  # of the worker that the show runs itself
        return Show(Path(name)).run()


if __name__ == "__main__":
    sys.exit(main())
