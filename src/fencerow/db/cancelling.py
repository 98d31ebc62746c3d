"""Asking PostgreSQL to stop what it runs for a connection, without waiting for the answer."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection, capabilities

from fencerow.db.watchdog import CANCEL_S


def cancel(connection: Connection[Any]) -> None:
    """Ask the server to stop, in a thread of its own: it may be as silent about this."""

    def ask() -> None:
        with suppress(psycopg.Error):  # the socket is shut next
            connection.cancel_safe(timeout=CANCEL_S)

    threading.Thread(target=ask, name="fencerow-cancel", daemon=True).start()


def acancel(connection: AsyncConnection[Any], loop: asyncio.AbstractEventLoop) -> None:
    if not capabilities.has_cancel_safe():
        # libpq below 17 waits for the answer. A thread of the event loop's would be waited for when that ends.
        threading.Thread(target=connection.cancel, name="fencerow-cancel", daemon=True).start()
        return

    async def ask() -> None:
        with suppress(psycopg.Error):
            await connection.cancel_safe(timeout=CANCEL_S)

    with suppress(RuntimeError):  # the loop is closed
        asyncio.run_coroutine_threadsafe(ask(), loop)
