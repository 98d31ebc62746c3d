"""Publishers: threads that each write rows of their own and events, in transactions of random length, or roll back.

A key's row is locked by whoever publishes under it, as the row of an account or an order would be: so the
versions of a key are the order of its commits.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import threading
import time
from typing import Any

import psycopg

from fencerow import Database
from fencerow.events import NewEvent, publish_many
from tests.events.bus.plan import LONG_S, Ground, Plan

EVENTS_MAX = 4  # of one transaction
BUSY_S = 120.0


class Publisher:
    """One of them, on a connection of its own."""

    def __init__(self, plan: Plan, number: int, events: int) -> None:
        self._plan = plan
        self._ground = Ground(plan)
        self._number = number
        self._left = events
        self._drawn = random.Random(f"{plan.seed}-{number}")
        self.aborted = 0

    def run(self, place: Database) -> None:
        connection = self._connected()
        try:
            while self._left > 0:
                self._one(place, connection)
        finally:
            connection.close()

    def _one(self, place: Database, connection: Any) -> None:
        """One transaction: committed, or rolled back."""
        many = min(self._left, self._drawn.randint(1, EVENTS_MAX))
        abort = self._drawn.random() < self._plan.aborts
        if not self._plan.is_postgres:
            connection.execute("BEGIN IMMEDIATE")
        key = f"k{self._drawn.randrange(self._plan.keys)}"
        version = self._version(connection, key)
        events = [
            NewEvent("bus.moved", [key, version, number, abort], key if number else None)
            for number in range(many)
        ]
        ids = publish_many(place, events, connection=connection)
        self._rest()
        for number, event_id in enumerate(ids):
            self._note(connection, event_id, key if number else None, version, number)
        if abort:
            connection.rollback()
            self.aborted += many
        else:
            connection.commit()
            self._left -= many

    def _version(self, connection: Any, key: str) -> int:
        found = connection.execute(
            f"UPDATE {self._ground.table('keys')} SET version = version + 1 "
            f"WHERE name = {self._ground.mark} RETURNING version",
            (key,),
        ).fetchall()
        return int(found[0][0])

    def _note(self, connection: Any, event_id: int, key: str | None, version: int, number: int) -> None:
        mark = self._ground.mark
        connection.execute(
            f"INSERT INTO {self._ground.table('truth')} VALUES ({', '.join([mark] * 5)})",
            (event_id, key, version, number, time.time()),
        )

    def _rest(self) -> None:
        """The rest of the transaction: mostly short, sometimes long, seldom very long. One writer must be quick."""
        if not self._plan.is_postgres:
            time.sleep(0.03 if self._drawn.random() < 0.01 else 0.0)
            return
        drawn = self._drawn.random()
        time.sleep(4 * LONG_S * drawn if drawn > 0.995 else LONG_S * drawn if drawn > 0.97 else 0.01 * drawn)

    def _connected(self) -> Any:
        if self._plan.is_postgres:
            return psycopg.connect(self._plan.url)
        path = self._plan.url.removeprefix("sqlite:///")
        return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)


def main(plan: Plan, first: int, count: int) -> None:
    """Run publishers number `first` and up, and print how many events they rolled back."""
    share = [plan.events // plan.publishers] * plan.publishers
    share[0] += plan.events - sum(share)
    with Database(plan.url) as place:
        place.check_or_create()
        publishers = [Publisher(plan, number, share[number]) for number in range(first, first + count)]
        threads = [threading.Thread(target=each.run, args=(place,)) for each in publishers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sys.stdout.write(f"{sum(each.aborted for each in publishers)}\n")


if __name__ == "__main__":
    main(Plan.of(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
