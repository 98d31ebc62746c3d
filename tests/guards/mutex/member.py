"""A process that wants a mutex: python -m tests.guards.mutex.member URL THREADS ROUNDS

It says "ready" and waits for a line before each part. First each thread tries once; the process tells how many got it,
and keeps it until the next line. Then each thread adds 1 to a number ROUNDS times, reading before it writes, under the
mutex.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from fencerow import Database
from fencerow.errors import MutexBusy
from fencerow.guards.mutex import Mutex


def main(url: str, threads: int, rounds: int) -> None:
    with Database(url) as database:
        database.check_or_create()
        got: list[Mutex] = []

        def once() -> None:
            mutex = Mutex(database, "k", wait_s=0, purpose="try")
            try:
                mutex.acquire()
                got.append(mutex)
            except MutexBusy:
                pass

        def count() -> None:
            for _ in range(rounds):
                with Mutex(database, "k", wait_s=60) as held, database.engine.session() as session:
                    held.guard(session.connection)
                    add_one(session.connection)

        say("ready")
        together(once, threads)
        say(str(len(got)))
        sys.stdin.readline()
        for mutex in got:
            mutex.release()
        say("free")
        together(count, threads)
        say("done")


def together(call: Callable[[], None], number: int) -> None:
    """Wait for a line, then call it in so many threads."""
    sys.stdin.readline()
    workers = [threading.Thread(target=call) for _ in range(number)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def add_one(connection: Any) -> None:
    """Read, then write: two who do it at once lose one."""
    (number,) = connection.execute("SELECT n FROM counter").fetchone()
    connection.execute(f"UPDATE counter SET n = {int(number) + 1}")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
