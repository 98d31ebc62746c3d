"""Kill the process groups of a worker's children when the worker is gone, however it went. Run as a script.

A parent-death signal reaches the child alone: what the child has started would live on. Here a pipe from the worker
says `+GROUP` and `-GROUP`, a line each; its end means that the worker is gone.
"""

import os
import signal
import sys


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = set()
    for line in sys.stdin.buffer:
        group = int(line[1:])
        if line[:1] == b"+":
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass  # all of it has ended


if __name__ == "__main__":
    main()
