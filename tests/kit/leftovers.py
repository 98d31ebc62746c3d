"""What a test may not leave behind: handlers of the log, threads of ours, and connections to its database."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.kit.databases import Superuser

LEFT = """
    SELECT application_name, query
    FROM pg_stat_activity
    WHERE backend_type = 'client backend'
      AND datname = %s
      AND usename = coalesce(%s::text, usename)
"""
WAIT_S = 30.0  # an ended thread and a closed connection's backend take a moment to go


@contextmanager
def no_log_handlers_left() -> Iterator[None]:
    """Complain where the root logger's handlers are others afterwards: the next tests' lines would go there."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    found, root.handlers[:] = list(root.handlers), before
    assert found == before, "the handlers of the root logger were changed, and not put back"


@contextmanager
def no_threads_left() -> Iterator[None]:
    """Complain of threads of ours that were started inside and still run."""
    before = set(threading.enumerate())
    yield

    def ours() -> list[str]:
        return [t.name for t in threading.enumerate() if t not in before and t.name.startswith("fencerow")]

    _until(lambda: not ours(), lambda: f"these threads were left: {ours()}")


def no_connections_left(
    superuser: Superuser, database: str, pooler: PgBouncer | None = None, *, role: str | None = None
) -> None:
    """Complain of connections to a database (of a role, if one is named) that nobody closed.

    A pooler keeps its own, and tells of its clients'.
    """

    def found() -> Sequence[object]:
        return pooler.clients(database) if pooler else superuser.rows(LEFT, [database, role])

    _until(lambda: not found(), lambda: f"these connections were left open: {found()}")


def _until(done: Callable[[], bool], complaint: Callable[[], str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(complaint())
        time.sleep(0.005)
