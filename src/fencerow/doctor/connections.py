"""Whether the server can hold all connections that the living workers may open, and how a pooler's are set to plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, info, ok, warn
from fencerow.core.model.worker import WorkerRecord
from fencerow.db.connections import of_worker
from fencerow.db.postgres import PostgresEngine
from fencerow.db.prepared import TAKES_TWO
from fencerow.db.probe import connect_postgres
from fencerow.db.run import Steps, execute, operation
from fencerow.db.text import amount

NAME = "connections"
FULL_PART = 0.9  # of what the server may hold
# What `fencerow.db.preparing` sets where no pooler stands between: a claim then walks its index in order.
IN_ORDER = "SELECT current_setting('enable_seqscan') = 'off' AND CAST(current_setting('seq_page_cost') AS float8) = 0"


class ConnectionsCounted(msgspec.Struct, frozen=True):
    """Client connections now, those of ours among them, and what limits them; a limit of -1 is none."""

    all: int
    ours: int
    server_max: int
    reserved: int
    role_max: int
    database_max: int

    @property
    def limit(self) -> tuple[int, str]:
        """How many there may be, and what says so."""
        limits = [(self.server_max - self.reserved, f"max_connections {self.server_max}")]
        limits += [(self.role_max, "CONNECTION LIMIT of the role")] if self.role_max >= 0 else []
        limits += [(self.database_max, "CONNECTION LIMIT of the database")] if self.database_max >= 0 else []
        return min(limits)


_counted = msgspec.json.Decoder(ConnectionsCounted)


@operation(alone=True, repeatable=True, writes="")
def counted() -> Steps[ConnectionsCounted]:
    """What the server says of its connections."""
    return _counted.decode(str((yield from execute("connection_counts"))[0][0]))


def examine_connections(
    engine: PostgresEngine, config: CoreConfig, alive: Sequence[WorkerRecord]
) -> Iterator[Finding]:
    """The sum over all living worker processes, against the server or the pooler, and how claims are planned there.

    Raises:
        Unavailable: the server takes no connection more.
    """
    found = engine.run(counted())
    one = sum(of_worker(config.pool_max, plain=True).values())
    stated = [one if each.connections is None else each.connections for each in alive]
    if is_pooled(engine.conninfo, config.connect_timeout_s):
        yield _behind_a_pooler(found, stated)
        yield _plans(engine.conninfo, config.connect_timeout_s)
    else:
        yield _direct(found, stated, one)


def _direct(found: ConnectionsCounted, stated: Sequence[int], one: int) -> Finding:
    limit, why = found.limit
    others = found.all - found.ours
    text = f"{found.all} of {limit} connections are in use ({why}{_reserved(found)}); {_workers(stated)}"
    if sum(stated) + others > limit:
        return warn(
            NAME,
            f"{text}; others hold {others}, so together it may be too many",
            "lower FENCEROW_POOL_MAX, run fewer processes, use a pooler, or raise the limit",
        )
    if found.all + one > limit:
        return warn(
            NAME,
            f"{text}; there is no room for one more worker, which opens up to {one}",
            "find out who holds them (pg_stat_activity), use a pooler, or raise the limit",
        )
    return ok(NAME, f"{text}; one more opens up to {one}")


def _behind_a_pooler(found: ConnectionsCounted, stated: Sequence[int]) -> Finding:
    limit, why = found.limit
    text = (
        f"through a pooler: {_workers(stated)} to it, so its own limit (max_client_conn of PgBouncer) must be higher; "
        f"{found.all} of {limit} connections of the server are in use ({why}{_reserved(found)})"
    )
    if found.all > limit * FULL_PART:
        return warn(NAME, text, "lower the pooler's default_pool_size, or raise the limit of the server")
    return ok(NAME, text)


def _plans(conninfo: str, timeout_s: float) -> Finding:
    if TAKES_TWO:
        return ok(
            "plans", "through a pooler: claims walk their index in order, as each says with its own message"
        )
    with connect_postgres(conninfo, timeout_s) as connection:
        row = connection.execute(IN_ORDER).fetchone()
    if row is not None and row[0]:
        return ok("plans", "through a pooler: claims walk their index in order, as the role is set")
    return info(
        "plans",
        "through a pooler: each claim is planned by the statistics of the moment, and behind those of an idle queue it "
        "sorts all that is queued; this libpq is older than 14, and cannot tell the server better in the same message",
        "use psycopg with libpq 14 or later (psycopg[binary] brings one); or "
        "set enable_seqscan = off and seq_page_cost = 0 for the role of the workers in this database "
        "(docs/postgresql.md), and let the pooler connect again",
    )


def _workers(stated: Sequence[int]) -> str:
    processes = amount(len(stated), "living worker process", "living worker processes")
    return f"{processes} may open up to {sum(stated)}"


def _reserved(found: ConnectionsCounted) -> str:
    return f", {found.reserved} of them reserved" if found.reserved else ""


def is_pooled(conninfo: str, timeout_s: float) -> bool:
    """A pooler must tell a process id of its own, by which it is asked to cancel; the server tells the one it has."""
    with connect_postgres(conninfo, timeout_s) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        return row is None or row[0] != connection.info.backend_pid
