"""A process that wants a mutex.

It says "ready" and waits to be told before each part. First each thread tries once; the process tells how many got it,
and keeps it until it is told. Then each thread adds 1 to a number ROUNDS times, reading before it writes, under the
mutex.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from fencerow import Database
from fencerow.errors import MutexBusy
from fencerow.guards.mutex import Mutex


def main(url: str, threads: int, rounds: int, teller: Connection) -> None:
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

        teller.send("ready")
        teller.recv()
        together(once, threads)
        teller.send(str(len(got)))
        teller.recv()
        for mutex in got:
            mutex.release()
        teller.send("free")
        teller.recv()
        together(count, threads)
        teller.send("done")


def together(call: Callable[[], None], number: int) -> None:
    """Call it in so many threads."""
    workers = [threading.Thread(target=call) for _ in range(number)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def add_one(connection: Any) -> None:
    """Read, then write: two who do it at once lose one."""
    (number,) = connection.execute("SELECT n FROM counter").fetchone()
    connection.execute(f"UPDATE counter SET n = {int(number) + 1}")
