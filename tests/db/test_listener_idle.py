"""The LISTEN connection is idle for as long as nothing is announced, and no server shall end it for that."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg

from fencerow.db.listener import Listener
from fencerow.db.postgres import PostgresEngine
from tests.kit.pace import PATIENCE_S


def test_the_listen_connection_may_be_idle(pg: PostgresEngine) -> None:
    opened: list[psycopg.Connection[Any]] = []
    found: list[str] = []
    listening = threading.Event()

    @contextlib.contextmanager
    def watch(connection: psycopg.Connection[Any]) -> Iterator[Any]:
        opened.append(connection)
        yield SimpleNamespace(busy=lambda: None)

    def told(_: str | None) -> None:  # in the thread that listens, before it waits
        ((bound,),) = opened[-1].execute("SHOW idle_session_timeout").fetchall()
        found.append(bound)
        listening.set()

    watching: Any = watch
    settings = {"options": "-c idle_session_timeout=60s"}
    listener = Listener(pg.conninfo, "fencerow", told, settings, watching)
    listener.start()
    assert listening.wait(PATIENCE_S)
    listener.stop()

    assert found == ["0"]
