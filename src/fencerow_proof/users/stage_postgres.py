"""A PostgreSQL database as a stage: actors behind relays, and one connection that looks who waits for whom."""

from __future__ import annotations

import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from fencerow_proof.errors import CannotExplore
from fencerow_proof.explorer.rings import ring
from fencerow_proof.users.meeting import tables_of
from fencerow_proof.users.performer import Performer, Tell
from fencerow_proof.users.relay import PORT, Relay
from fencerow_proof.users.stage import Look, stuck
from fencerow_proof.users.styles import Style

GATE = 7_300_001  # the first half of the advisory locks that hold statements; the second is the process
PAUSE_S = 0.0003
LOOK_MS = 20
CHANGES_TABLES = re.compile(r"\b(create|alter|drop|rename)\b|\bdo\b|\bselect\b", re.IGNORECASE)
QUICK_S = 0.0008  # within which most statements are answered: before it nobody is asked who waits
HOLD = """
CREATE OR REPLACE FUNCTION {}.fencerow_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock({}, pg_backend_pid());
    PERFORM pg_advisory_unlock({}, pg_backend_pid());
    RETURN NULL;
END $$
"""
TRIGGER = """
CREATE TRIGGER fencerow_hold BEFORE INSERT OR UPDATE OR DELETE ON {}
    FOR EACH STATEMENT EXECUTE FUNCTION {}.fencerow_hold()
"""
# Tables of this role in its own schemas that have no such trigger yet.
UNARMED = """
SELECT space.nspname, class.relname
FROM pg_class AS class
JOIN pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.relkind IN ('r', 'p')
  AND NOT class.relispartition
  AND class.relpersistence <> 't'
  AND space.nspname NOT IN ('pg_catalog', 'information_schema')
  AND pg_has_role(class.relowner, 'USAGE')
  AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = class.oid AND tgname = 'fencerow_hold')
"""
ARMED_SCHEMAS = """
SELECT space.nspname FROM pg_proc AS proc
JOIN pg_namespace AS space ON space.oid = proc.pronamespace
WHERE proc.proname = 'fencerow_hold' AND pg_has_role(proc.proowner, 'USAGE')
"""


class PostgresStage:
    """Plays on a database that belongs to the test alone.

    In held mode a statement that changes a table stops once more, after its snapshot was taken: statement
    triggers wait there for a lock of ours.
    """

    engine = "postgresql"

    def __init__(self, url: str, *, hold: bool, patience_s: float) -> None:
        try:
            self._control = psycopg.connect(url, autocommit=True, prepare_threshold=None, connect_timeout=10)
        except psycopg.OperationalError as error:
            raise CannotExplore(
                f"the database cannot be reached: {error}",
                "the explorer needs a scratch database",
                "check its URL",
            ) from None
        # A transaction of an actor may lock a whole table: what cannot be looked at now is looked at later.
        self._control.execute(f"SET lock_timeout = '{LOOK_MS}ms'; SET client_min_messages = error".encode())
        self._hold = hold
        if hold:
            self._arm()
        self._patience_s = patience_s
        self._folder = Path(tempfile.mkdtemp(prefix="fencerow-"))
        self._relays: dict[str, Relay] = {}
        self._shut: set[int] = set()

    # --- connections -----------------------------------------------------------------------------------

    def seat(self, performer: Performer) -> None:
        """This performer plays on the relay of its name."""
        self._relay(performer.name).performer = performer

    def connect(self, name: str, style: Style, given: Callable[..., Any] | None) -> Any:
        """Open the connection of an actor."""
        url = self._url(self._relay(name))
        if given is not None:
            return given(url)
        if style is Style.ASYNC:
            return psycopg.AsyncConnection.connect(url, prepare_threshold=None)
        return psycopg.connect(url, autocommit=style is Style.GENERATOR, prepare_threshold=None)

    # --- an order ----------------------------------------------------------------------------------------

    def run(self, script: str) -> None:
        """Run the user's SQL on a connection of our own."""
        self._control.execute(f"SET lock_timeout = 0; {script}; SET lock_timeout = '{LOOK_MS}ms'".encode())
        if self._hold and CHANGES_TABLES.search(script):
            self._arm()

    def begin(self) -> None:
        """Nothing is held any more."""
        self._control.execute("SELECT pg_advisory_unlock_all()")
        self._shut.clear()

    def let_go(self, performer: Performer) -> None:
        """The performer's next step: its statement is sent, or the held one goes on."""
        if performer.held:
            for pid in self._relay(performer.name).pids & self._shut:
                self._control.execute("SELECT pg_advisory_unlock(%s, %s)", [GATE, pid])
                self._shut.discard(pid)
            performer.held = False
            return
        if self._hold:
            for pid in self._relay(performer.name).pids - self._shut:
                self._control.execute("SELECT pg_advisory_lock(%s, %s)", [GATE, pid])
                self._shut.add(pid)
        performer.let_go()

    def settle(self, performers: Sequence[Performer], tell: Tell) -> None:
        """Wait until each performer stands before its next statement, waits for another's lock, or is done."""
        deadline = time.monotonic() + self._patience_s
        hall = performers[0].hall
        while True:
            with hall:
                hall.wait_for(lambda: not _fresh(performers), QUICK_S)
                moving = [each for each in performers if each.is_moving and not each.held]
                if not moving:
                    return
                in_code = [each for each in moving if not each.in_flight]
                if in_code:
                    hall.wait(0.05)
            if not in_code and self._all_wait(moving, performers, tell):
                return
            if time.monotonic() > deadline:
                raise stuck(in_code or moving, self._patience_s)
            with hall:
                hall.wait(PAUSE_S)

    def unblock(self, performers: Sequence[Performer]) -> bool:  # noqa: ARG002 (SQLite chooses among them)
        """Nobody may go. On PostgreSQL a ring is broken where it closes, so nothing is left to do."""
        return False

    def look(self, queries: Mapping[str, str]) -> Look:
        """The rows that break each invariant; None when a lock forbids to look just now."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        for name, text in queries.items():
            try:
                found[name] = self._control.execute(text.encode()).fetchmany(5)
            except psycopg.errors.LockNotAvailable:
                return None
        return found

    def tables(self) -> Mapping[str, str] | None:
        return tables_of(self.rows)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return self._control.execute(text.encode()).fetchall()

    def cut(self) -> None:
        """Break the actors' connections: their transactions are rolled back before this returns."""
        pids = [pid for relay in self._relays.values() for pid in relay.pids]
        for relay in self._relays.values():
            relay.cut_all()
        self.begin()
        self._control.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [pids])

    def close(self) -> None:
        for relay in self._relays.values():
            relay.close()
        if not self._control.closed:
            self._control.execute("SET lock_timeout = '2s'")
            if self._hold:
                self._disarm()
            self._control.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- inside ------------------------------------------------------------------------------------------

    def _all_wait(self, moving: Sequence[Performer], performers: Sequence[Performer], tell: Tell) -> bool:
        """Ask the server whether each of these waits for one of us, and note for whom."""
        owners = {pid: each for each in performers for pid in self._relay(each.name).pids}
        mine = {pid for pid, each in owners.items() if each in moving}
        rows = self._control.execute(
            "SELECT pid, pg_blocking_pids(pid) FROM unnest(%s::int[]) AS pid", [sorted(mine)]
        ).fetchall()
        control = self._control.info.backend_pid
        blockers = {pid: set(by) & {*owners, control} for pid, by in rows if by}
        waiting = {owners[pid] for pid, by in blockers.items() if by}
        if not set(moving) <= waiting:
            return False
        circle = ring(blockers)
        if circle:
            # The server would end one of them, but whom depends on its clock: always the last one of the ring.
            victim = max(
                (pid for pid in circle if pid in owners), key=lambda pid: performers.index(owners[pid])
            )
            owners[victim].victim = True
            self._control.execute("SELECT pg_cancel_backend(%s)", [victim])
            return False
        for pid, by in blockers.items():
            self._note(owners[pid], by, control, owners, tell)
        return True

    def _note(
        self,
        performer: Performer,
        by: set[int],
        control: int,
        owners: Mapping[int, Performer],
        tell: Tell,
    ) -> None:
        with performer.hall:
            if not performer.in_flight:
                return  # answered meanwhile
            if control in by:
                performer.held = True
                tell(performer.name, f"{performer.doing}: held after its snapshot", False)
                return
            names = tuple(sorted({owners[pid].name for pid in by}))
            if performer.blocked_by != names:
                performer.blocked_by = names
                tell(performer.name, f"{performer.doing}: waits for {', '.join(names)}", False)

    def _arm(self) -> None:
        """Give every table of ours that lacks it the trigger that holds."""
        for schema, table in self._control.execute(UNARMED).fetchall():
            space = sql.Identifier(schema)
            self._control.execute(sql.SQL(HOLD).format(space, GATE, GATE))
            self._control.execute(sql.SQL(TRIGGER).format(sql.Identifier(schema, table), space))

    def _disarm(self) -> None:
        for (schema,) in self._control.execute(ARMED_SCHEMAS).fetchall():
            self._control.execute(
                sql.SQL("DROP FUNCTION {}.fencerow_hold() CASCADE").format(sql.Identifier(schema))
            )

    def _relay(self, name: str) -> Relay:
        if name not in self._relays:
            self._relays[name] = Relay(self._folder / str(len(self._relays)), self._server)
        return self._relays[name]

    def _server(self) -> socket.socket:
        info = self._control.info
        if info.host.startswith("/"):
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.connect(f"{info.host}/.s.PGSQL.{info.port}")
            return server
        return socket.create_connection((info.hostaddr or info.host, info.port), 10)

    def _url(self, relay: Relay) -> str:
        info = self._control.info
        options = {"host": str(relay.folder), "port": str(PORT)}
        if info.options:
            options["options"] = info.options
        user = quote(info.user, safe="")
        if info.password:
            user += ":" + quote(info.password, safe="")
        return f"postgresql://{user}@/{quote(info.dbname, safe='')}?{urlencode(options)}"


def _fresh(performers: Sequence[Performer]) -> bool:
    """Whether somebody is on the way who is not known to wait."""
    return any(each.is_moving and not each.held and not each.blocked_by for each in performers)
