"""The server: version, durability, role, clock, snapshots that hold the horizon, and whether LISTEN hears."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, fail, info, ok, warn
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Steps, execute, operation
from fencerow.doctor.horizon.holders import Holder, blocks, cost, holders

VERSION_MIN = 150_000
VERSION_TESTED_MAX = 189_999
SKEW_WARN_S = 1.0
SKEW_FAIL_S = 10.0
SNAPSHOT_WARN_S = 300.0
SLOT_XIDS_WARN = 1_000_000
SHOWN_MAX = 3
HEARD_S = 3.0
TABLES_NAMED = 4


class ServerState(msgspec.Struct, frozen=True):
    """What one statement tells of the server."""

    version: int
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    standby: bool
    read_only: str
    now_us: int
    role: str
    superuser: bool


class Privilege(msgspec.Struct, frozen=True):
    """What the role may not do with a table."""

    table: str
    missing: str


class Privileges(msgspec.Struct, frozen=True):
    """What this role may do with the tables of a schema: how many there are, what it lacks, and those of which policies
    choose its rows."""

    role: str
    tables: int
    missing: list[Privilege]
    filtered: list[str]


_server = msgspec.json.Decoder(ServerState)
_privileges = msgspec.json.Decoder(Privileges)


@operation(alone=True, repeatable=True, writes="")
def server_facts() -> Steps[ServerState]:
    """Settings, role and clock of the server."""
    return _server.decode(str((yield from execute("server_facts"))[0][0]))


@operation(alone=True, repeatable=True, writes="")
def missing_privileges(schema: str) -> Steps[Privileges]:
    """The tables of the schema, and with which of them a worker under this role could not work."""
    return _privileges.decode(str((yield from execute("missing_privileges", schema=schema))[0][0]))


@operation(alone=True, repeatable=True, writes="")
def hidden_sessions() -> Steps[int]:
    """How many sessions this role may not look into."""
    return int(str((yield from execute("hidden_sessions"))[0][0]))


def examine_postgres(engine: PostgresEngine, config: CoreConfig) -> Iterator[Finding]:
    """All checks of the server."""
    before = time.time_ns() // 1000
    server = engine.run(server_facts())
    after = time.time_ns() // 1000
    yield _version(server)
    yield from _durability(server)
    yield from _writable(server)
    yield clock(server.now_us, (before + after) // 2, (after - before) / 2e6)
    yield _role(server)
    yield from _privileges_of(engine)
    yield from _horizon(engine, server.now_us)
    if not server.standby:
        yield listening(engine, config)


def _version(server: ServerState) -> Finding:
    found = f"PostgreSQL {server.version // 10_000}.{server.version % 10_000}"
    if server.version < VERSION_MIN:
        return fail("version", f"{found} is not supported", "upgrade to PostgreSQL 15 or newer")
    if server.version > VERSION_TESTED_MAX:
        return info("version", f"{found} is newer than any this Fencerow was tested with", "upgrade Fencerow")
    return ok("version", found)


def _durability(server: ServerState) -> Iterator[Finding]:
    if server.fsync != "on":
        yield fail(
            "fsync", f"it is {server.fsync}: a crash of the machine loses accepted jobs", "set fsync = on"
        )
    if server.full_page_writes != "on":
        yield warn(
            "full_page_writes",
            f"it is {server.full_page_writes}: a crash may damage pages, unless the disk writes them whole",
            "set full_page_writes = on",
        )
    if server.synchronous_commit in ("off",):
        yield fail(
            "synchronous_commit",
            "it is off: jobs that were accepted in the last moments before a crash are lost",
            "ALTER ROLE … SET synchronous_commit = on for this role",
        )
    if server.fsync == "on" and server.synchronous_commit != "off":
        yield ok("durability", f"fsync on, synchronous_commit {server.synchronous_commit}")


def _writable(server: ServerState) -> Iterator[Finding]:
    if server.standby:
        yield fail(
            "writable",
            "this server is a standby: it takes no submits and no LISTEN",
            "connect to the primary: target_session_attrs=read-write in the URL",
        )
    elif server.read_only != "off":
        yield fail(
            "writable",
            "transactions are read-only for this role or database",
            "ALTER ROLE … RESET default_transaction_read_only, or use another role",
        )
    else:
        yield ok("writable", "a primary that takes writes")


def clock(theirs_us: int, ours_us: int, doubt_s: float) -> Finding:
    """How far the server's clock is from ours, give or take the doubt."""
    skew_s = (theirs_us - ours_us) / 1e6
    found = f"the database is {abs(skew_s):.3f} s {'ahead of' if skew_s > 0 else 'behind'} this host"
    if abs(skew_s) - doubt_s > SKEW_FAIL_S:
        return fail("clock", found, "run NTP on both: delays and logs of this host are wrong by this time")
    if abs(skew_s) - doubt_s > SKEW_WARN_S:
        return warn("clock", found, "run NTP on both; leases go by the database's clock alone")
    return ok("clock", f"{found} (± {doubt_s:.3f} s)")


def _role(server: ServerState) -> Finding:
    if server.superuser:
        return warn(
            "role",
            f"{server.role} is a superuser",
            "use a role of its own; `fencerow sql --grants` prints what it needs",
        )
    return ok("role", server.role)


def _privileges_of(engine: PostgresEngine) -> Iterator[Finding]:
    found = engine.run(missing_privileges(engine.schema))
    if found.missing:
        yield warn(
            "privileges",
            f"the role {found.role} lacks {'; '.join(_folded(found.missing))}",
            "a worker needs them (`fencerow sql --grants` prints them); a role that only submits does not",
        )
    elif found.tables:  # where there is no table, the check of the schema says so
        yield ok("privileges", f"all on the tables of schema {engine.schema}")
    if found.filtered:
        yield warn(
            "row security",
            f"policies choose the rows that {found.role} sees of {', '.join(found.filtered)}",
            "a worker must see each row, and below a policy PostgreSQL finds no lane by its index, so each claim reads"
            " all that is queued: give the role BYPASSRLS, or let it own the tables",
        )


def _folded(missing: list[Privilege]) -> Iterator[str]:
    """Tables that lack the same, together, and the first of them by name."""
    for lacking in dict.fromkeys(each.missing for each in missing):
        tables = [each.table for each in missing if each.missing == lacking]
        more = f" and {len(tables) - TABLES_NAMED} more" if len(tables) > TABLES_NAMED else ""
        yield f"{lacking} on {', '.join(tables[:TABLES_NAMED])}{more}"


def _horizon(engine: PostgresEngine, now_us: int) -> Iterator[Finding]:
    """Who holds back the horizon, since when, and what that costs."""
    found = engine.run(holders())
    old = [each for each in found if _is_old(each, now_us)]
    for each in old[:SHOWN_MAX]:
        age_s = each.age_s(now_us)
        since = f"for {age_s / 60:.0f} min" if age_s is not None else f"for {each.xids:,} transactions"
        yield warn(
            "old snapshot",
            f"{each.named} has held back cleaning {since}"
            + (f", {each.state}" if each.state else "")
            + f"; {_cost(engine)}",
            _end_it(each),
        )
    if not old:
        yield ok("old snapshots", f"none older than {SNAPSHOT_WARN_S / 60:.0f} min")
    hidden = engine.run(hidden_sessions())
    if hidden:
        yield info(
            "old snapshots",
            f"{hidden} sessions of other roles cannot be read",
            "GRANT pg_read_all_stats to this role to see them",
        )


def _is_old(holder: Holder, now_us: int) -> bool:
    age_s = holder.age_s(now_us)
    return age_s > SNAPSHOT_WARN_S if age_s is not None else (holder.xids or 0) > SLOT_XIDS_WARN


def _end_it(holder: Holder) -> str:
    """What to do about it."""
    cost = "dead rows slow the claims down: "
    match holder.kind:
        case "session":
            how = f" with SELECT pg_terminate_backend({holder.pid})" if holder.pid else ""
            return f"{cost}end it{how}, or let workers do so: horizon_end_after_s"
        case "prepared transaction":
            return f"{cost}COMMIT PREPARED or ROLLBACK PREPARED '{holder.application}'"
        case "standby":
            return f"{cost}end the long query on the standby, or set hot_standby_feedback = off there"
        case _:
            return f"{cost}let its reader catch up, or SELECT pg_drop_replication_slot('{holder.who}')"


def _cost(engine: PostgresEngine) -> str:
    """What old snapshots cost the claims now; before our tables are there, nothing."""
    if not engine.run(missing_privileges(engine.schema)).tables:
        return "there are no jobs yet"
    return replace(engine.run(cost()), blocks=engine.run(blocks())).told


def listening(engine: PostgresEngine, config: CoreConfig) -> Finding:
    """NOTIFY ourselves and listen: through a pooler in transaction mode nothing is heard, and nothing is said."""
    word = f"doctor-{secrets.token_hex(8)}"
    listening, heard = threading.Event(), threading.Event()

    def listen(message: str | None) -> None:
        (listening if message is None else heard if message == word else threading.Event()).set()

    stop = engine.listen(listen)
    try:
        if not listening.wait(config.connect_timeout_s):
            return warn(
                "listen",
                "no connection for LISTEN could be made",
                "check FENCEROW_LISTEN_URL; polling goes on, up to poll_max_s later",
            )
        engine.wake([word])
        if heard.wait(HEARD_S):
            return ok("listen", "a NOTIFY was heard")
        return warn(
            "listen",
            f"a NOTIFY was not heard within {HEARD_S:g} s: there is a pooler in between",
            "set FENCEROW_LISTEN_URL to a direct connection; polling goes on, up to poll_max_s later",
        )
    finally:
        stop()
