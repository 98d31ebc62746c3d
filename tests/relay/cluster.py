"""A mock cluster in a process of its own, which may be stopped and let go on: `python -m tests.relay.cluster`.

It says where it is, and lives until its standard input ends.
"""

from __future__ import annotations

import sys

from tests.relay.stage import Cluster

if __name__ == "__main__":
    cluster = Cluster()
    sys.stdout.write(cluster.servers + "\n")
    sys.stdout.flush()
    sys.stdin.read()
