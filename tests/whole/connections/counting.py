"""Counts the connections to one database again and again while something works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer

PAUSE_S = 0.005


class Count:
    """The number of a database's connections, and the highest that was seen."""

    def __init__(self, server: PostgresServer, database: str, pooler: PgBouncer | None) -> None:
        self._looking = server.connect()
        self._database = database
        self._pooler = pooler
        self.most = 0
        self.looks = 0
        self._over = threading.Event()

    def now(self) -> int:
        """How many there are: what a process opened, whatever a pooler makes of it and the server adds itself."""
        listening = self._rows("LISTEN")
        return listening + (
            len(self._pooler.clients(self._database)) if self._pooler else self._rows("other")
        )

    def watch(self) -> None:
        while not self._over.wait(PAUSE_S):
            self.most = max(self.most, self.now())
            self.looks += 1

    def end(self) -> None:
        self._over.set()

    def close(self) -> None:
        self._looking.close()

    def _rows(self, which: str) -> int:
        query = """
            SELECT count(*) FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND datname = %s AND starts_with(query, 'LISTEN') = (%s = 'LISTEN')
        """
        return int(str(self._looking.execute(query, [self._database, which]).fetchall()[0][0]))


@contextmanager
def counted(server: PostgresServer, database: str, pooler: PgBouncer | None) -> Iterator[Count]:
    """Count while the block runs."""
    count = Count(server, database, pooler)
    thread = threading.Thread(target=count.watch, name="count")
    thread.start()
    try:
        yield count
    finally:
        count.end()
        thread.join()
        count.close()
    assert count.looks > 3, "nothing was counted"
