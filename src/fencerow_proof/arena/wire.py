"""A PostgreSQL connection whose statements can be started and looked at without waiting for them."""

from __future__ import annotations

import select
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from fencerow.db.queries import Query, numbered, written
from fencerow.db.run import Rows

# Each statement is planned once and for all: planning took most of a play's time.
PLANNED_ONCE = {"plan_cache_mode": "force_generic_plan"}
# The notices by which a gate says that it was reached, without and with locks on rows.
HELD, HELD_LOCKS = b"held", b"held, locks"


class Wire:
    """One connection in autocommit. At most one statement is under way, and is prepared when it is first met."""

    def __init__(self, conninfo: str, settings: Mapping[str, str]) -> None:
        self._connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
        self._pg = self._connection.pgconn
        self._pg.notice_handler = self._noticed
        self.pid = self._pg.backend_pid
        self.busy = False
        self.at_gate = False  # the statement under way said that it stands at its gate
        self.locks_there = False  # and that its transaction holds locks
        self._query: Query | None = None
        self._prepared: dict[str, bytes] = {}
        self._ahead = 0  # requests of the same flight whose replies come before its own
        self._failed: psycopg.Error | None = None
        for name, value in {**PLANNED_ONCE, **settings}.items():
            self.run(f"SELECT set_config('{name}', '{value}', false)")

    @property
    def socket(self) -> int:
        return self._pg.socket

    def start(self, query: Query, params: Mapping[str, Any], *, begin: bool = False) -> None:
        """Send a named query and return at once; `begin`: as the first of a transaction."""
        if begin and not query.parameters:
            self.run("BEGIN")
        self._query = query
        if query.copies:
            self._copy(query, str(params["lines"]))
        elif query.parameters:
            (text,) = query.statements
            values = [encoded(params[name]) for name in query.parameters]
            self._send_prepared(numbered(text, query.parameters), values, begin)
        else:
            self._send(";\n".join(written(text, params) for text in query.statements))

    def begin(self, text: str) -> None:
        """Send a script without parameters and return at once."""
        self._query = None
        self._send(text)

    def run(self, text: str) -> Rows:
        """Send a script without parameters and wait for its rows."""
        self.begin(text)
        return self.wait()

    def replied(self, timeout_s: float = 0.0) -> bool:
        """Whether the reply is there, after at most this time."""
        if timeout_s:
            select.select([self.socket], [], [], timeout_s)
        self._pg.consume_input()
        while self._ahead and not self._pg.is_busy():
            self._take_ahead()
        return not self._pg.is_busy()

    def wait(self) -> Rows:
        """The rows of what is under way.

        Raises:
            psycopg.Error: the server refused it.
        """
        rows: Rows = []
        while True:
            while not self.replied():
                select.select([self.socket], [], [], 1.0)
            result = self._pg.get_result()
            if result is None:
                if self._pg.pipeline_status != pq.PipelineStatus.OFF:
                    continue  # its end is still to come
                break
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                self._pg.exit_pipeline_mode()
                break
            if result.status == pq.ExecStatus.FATAL_ERROR:
                self._failed = error_from_result(result)
            elif result.status == pq.ExecStatus.TUPLES_OK:
                rows = [*rows, *self._loaded(result)]
        self.busy = False
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        return rows

    def cancel(self) -> None:
        """Ask the server to give up what is under way; the reply then is an error."""
        self._connection.cancel_safe()

    def rest(self) -> None:
        """Give up what is under way, if anything is."""
        if self.busy:
            self.cancel()
            try:
                self.wait()
            except psycopg.Error:
                pass  # it was cancelled

    def close(self) -> None:
        """Break the connection: an open transaction is rolled back by the server."""
        self._connection.close()

    def _copy(self, query: Query, lines: str) -> None:
        """Send a COPY with its rows. The server asks for these before it looks at the table."""
        (text,) = query.statements
        self._send(text)
        while not self.replied():
            select.select([self.socket], [], [], 1.0)
        result = self._pg.get_result()
        if result is None or result.status != pq.ExecStatus.COPY_IN:
            self._failed = None if result is None else error_from_result(result)
            return
        self._pg.put_copy_data(lines.encode())
        self._pg.put_copy_end()

    def _send(self, text: str) -> None:
        self._pg.send_query(text.encode())
        self.busy, self.at_gate = True, False

    def _send_prepared(self, text: str, values: list[bytes | None], begin: bool) -> None:
        """What is met for the first time is prepared in the same flight, since already that may wait for a lock."""
        name, new = self._prepared.get(text), False
        if name is None:
            name, new = str(len(self._prepared)).encode(), True
            self._prepared[text] = name
        flight = begin or new
        if flight:
            self._pg.enter_pipeline_mode()
        if begin:
            self._pg.send_query_params(b"BEGIN", [])
        if new:
            self._pg.send_prepare(name, text.encode())
        self._pg.send_query_prepared(name, values)
        if flight:
            self._pg.pipeline_sync()
        self._ahead = int(begin) + int(new)
        self.busy, self.at_gate = True, False

    def _take_ahead(self) -> None:
        result = self._pg.get_result()
        if result is None:
            self._ahead -= 1
        elif result.status == pq.ExecStatus.FATAL_ERROR:
            self._failed = error_from_result(result)
            self._prepared.popitem()  # begun is always; what was refused is the preparation

    def _noticed(self, notice: pq.abc.PGresult) -> None:
        said = notice.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        if said in (HELD, HELD_LOCKS):
            self.at_gate, self.locks_there = True, said == HELD_LOCKS

    def _loaded(self, result: pq.abc.PGresult) -> Rows:
        transformer = Transformer(self._connection)
        transformer.set_pgresult(result)
        loaded: list[Any] = transformer.load_rows(0, result.ntuples, tuple)
        if self._query is None:
            return loaded
        names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
        return self._query.with_names(names, loaded)


def encoded(value: Any) -> bytes | None:
    """A parameter as text for the server, which infers the types from the statement."""
    match value:
        case None:
            return None
        case bytes():
            return value
        case list():
            return (
                "{" + ",".join("NULL" if part is None else _quoted(str(part)) for part in value) + "}"
            ).encode()
        case _:
            return str(value).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
