"""Say at once, and without its password, why a server cannot be used. Pools only say that they waited."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from fencerow.db.errors import Unavailable, UrlError
from fencerow.db.faults import fault, first_line
from fencerow.db.url import masked

FULL = "53300"  # the server has no connection left, for anybody or for this role
CODE = re.compile(rb'ErrorResponse.*? C "(\w{5})"')  # of the trace
TRACE_S = 2.0
WAITS_FOR = {pq.PollingStatus.READING: select.POLLIN, pq.PollingStatus.WRITING: select.POLLOUT}
PASSWORD = re.compile(r"[A-Za-z+]+://[^:@/?#]*:(.*)@", re.DOTALL)


def reach_postgres(conninfo: str, timeout_s: float) -> None:
    """Connect once and leave; see `connect_postgres`."""
    connect_postgres(conninfo, timeout_s).close()


def lets_somebody_in(conninfo: str) -> bool:
    """Whether the server answers and lets anybody in: false while it starts, stops, is full, or cannot be reached.

    It tells this by a code. What it says to whoever logs in is a text of its own language. No thread of this process
    runs meanwhile, for two seconds at most.
    """
    limited = make_conninfo(conninfo, connect_timeout=2).encode()
    is_up = pq.PGconn.ping(limited) not in (pq.Ping.REJECT, pq.Ping.NO_RESPONSE)
    return is_up and refused_with(limited) != FULL


def refused_with(conninfo: bytes) -> str | None:
    """The SQLSTATE with which the server refuses whoever connects so. None: it does not, or libpq does not show it.

    libpq keeps the code to itself: it is `last_sqlstate` in its fe-connect.c, no function gives it, and an error of
    psycopg at connect has none. Only its trace of all messages has it, since libpq 18, and psycopg lets us trace on
    Linux alone. A trace holds what a login sends, so it stays in memory.
    """
    if sys.platform != "linux":
        return None
    try:
        kept = os.memfd_create("fencerow-trace")
    except OSError:  # no file is left, or it is not allowed here
        return None
    with os.fdopen(kept, "rb") as trace:
        connection = pq.PGconn.connect_start(conninfo)
        try:
            connection.trace(trace.fileno())
            _connected_within(connection, TRACE_S)
            connection.untrace()  # it writes the last of it
        finally:
            connection.finish()
        trace.seek(0)
        found = CODE.search(trace.read())
    return found[1].decode() if found else None


def _connected_within(connection: Any, limit_s: float) -> None:
    """Returns when it is connected, refused, or the time is over."""
    until = time.monotonic() + limit_s
    while connection.status != pq.ConnStatus.BAD and (left_s := until - time.monotonic()) > 0:
        event = WAITS_FOR.get(connection.connect_poll())
        if event is None:
            return
        poll = select.poll()
        poll.register(connection.socket, event)
        poll.poll(left_s * 1000)


def postgres_version(conninfo: str, timeout_s: float) -> str:
    """The server's version, which it says to whoever connects; see `connect_postgres`."""
    with connect_postgres(conninfo, timeout_s) as connection:
        said = connection.info.parameter_status("server_version") or "of an unknown version"
    return said.partition(" ")[0] if said[0].isdigit() else said


def connect_postgres(conninfo: str, timeout_s: float, **settings: Any) -> psycopg.Connection[Any]:
    """Connect, in autocommit, with UTF8 unless `settings` say another encoding.

    Raises:
        UrlError: libpq does not understand the URL.
        Unavailable: no connection came about; the server's own reason is in `why`.
    """
    try:
        return psycopg.connect(
            conninfo,
            connect_timeout=max(2, round(timeout_s)),
            autocommit=True,
            **{"client_encoding": "UTF8", **settings},
        )
    except psycopg.ProgrammingError as error:
        raise UrlError(
            f"the database URL {ascii(masked(conninfo))[1:-1][:200]} cannot be used",
            reason_of(conninfo, error),
            "correct it; percent-encode special characters in a password",
        ) from None
    except psycopg.Error as error:
        known = fault(error)
        if known is not None:
            raise known from None
        raise Unavailable(
            f"no connection to {ascii(masked(conninfo))[1:-1][:200]}",
            reason_of(conninfo, error),
            "check host, port, database, role and password; nothing was stored",
        ) from None


def reason_of(conninfo: str, error: BaseException) -> str:
    """The first line of libpq's message, unless a misread password may have got into it."""
    if _misread_password(conninfo):
        return "the password holds characters that must be percent-encoded, such as @ / : # ?"
    # Several hosts or addresses: each has its line; the last is the last that was tried.
    return first_line(error).removeprefix("connection failed: ")


def _misread_password(conninfo: str) -> bool:
    found = PASSWORD.match(conninfo)
    if not found:
        return False
    try:
        return conninfo_to_dict(conninfo).get("password") != unquote(found[1])
    except psycopg.ProgrammingError:
        return True
