"""Start PostgreSQL's programs as direct children, in a clean environment, bound to our life."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from fencerow.testing.pg_home import Account

LAUNCH = Path(__file__).with_name("_launch.py")


def spawn(command: list[str], account: Account, directory: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start `command` as `account`; on Linux it ends when this process does."""
    identity = [str(account.uid), str(account.gid), str(os.getpid())]
    # Root's HOME is closed to `nobody`, and a caller's PG… variables would reach the server.
    environment = {"HOME": str(directory), "PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCH), *identity, *command],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    return _in_lasting_thread(start)


def _in_lasting_thread(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    # A parent-death signal fires when the *thread* that started the child ends, not the process.
    if threading.current_thread() is threading.main_thread():
        return start()
    return _starter().submit(start).result()


@cache
def _starter() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="fencerow-pg")
