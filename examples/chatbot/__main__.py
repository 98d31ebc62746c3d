"""The whole show in one terminal: `python -m examples.chatbot`. It takes half a minute and needs no server."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

RECIPIENTS, RECIPIENTS_MIN = 600, 50
# Short enough that somebody can watch a lease run out; production has 30 s.
QUICK = {
    "FENCEROW_LEASE_S": "3",
    "FENCEROW_RENEW_S": "0.5",
    "FENCEROW_SWEEP_S": "0.5",
    "FENCEROW_POLL_MAX_S": "0.2",
}


def main() -> int:
    wanted = _arguments()
    from examples.stage import outside

    with tempfile.TemporaryDirectory(prefix="chatbot-") as name, outside("examples.chatbot.outside") as url:
        folder = Path(name)
        shards = wanted.shards or [f"sqlite:///{folder}/messages_{number}.db" for number in range(4)]
        os.environ |= QUICK
        os.environ["FENCEROW_URL"] = wanted.url or f"sqlite:///{folder}/chatbot.db"
        os.environ["CHATBOT_SHARDS"] = " ".join(shards)
        os.environ["CHATBOT_OUTSIDE"] = url

        # Only now: the app reads its settings from the environment when it is imported.
        from examples.chatbot.show import Show

        return Show(folder, recipients=wanted.recipients).run()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.chatbot", description=__doc__)
    parser.add_argument("--url", help="the app's database; a SQLite file by default")
    parser.add_argument(
        "--shards", nargs="+", help="the databases of the messages; four SQLite files by default"
    )
    parser.add_argument("--recipients", type=int, default=RECIPIENTS, help=f"of the broadcast ({RECIPIENTS})")
    wanted = parser.parse_args()
    if wanted.recipients < RECIPIENTS_MIN:
        parser.error(
            f"--recipients must be at least {RECIPIENTS_MIN}, so that there is a middle to be killed in"
        )
    return wanted


if __name__ == "__main__":
    sys.exit(main())
