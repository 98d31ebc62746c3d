"""A program that gets away from the job that starts it. Arguments: the folder where it notes its number, and how.

`setsid`: a session of its own. `daemon`: two forks and a session, as daemons do. `restless`: such a daemon that is
another process every few milliseconds.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main(folder: str, how: str) -> None:
    if how != "setsid" and os.fork():
        os._exit(0)
    os.setsid()
    if how != "setsid" and os.fork():
        os._exit(0)
    with Path(folder, "pids").open("a") as file:
        file.write(f"{os.getpid()}\n")
    for _ in range(60_000):
        time.sleep(0.01)
        if how == "restless" and os.fork():
            os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
