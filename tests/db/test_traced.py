"""Connections behind the proxies of tracing libraries."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pytest

from fencerow.core.store import store
from fencerow.db.borrow import borrowed
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import UnusableConnection
from tests.db.work import seen
from tests.kit.jobs import AnyEngine, new_job


class Traced:
    """What a transparent proxy does (`wrapt.ObjectProxy`): all is the wrapped object's, its class too."""

    def __init__(self, wrapped: Any) -> None:
        object.__setattr__(self, "__wrapped__", wrapped)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.__wrapped__.__class__

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "__wrapped__"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)


def test_a_traced_connection_carries_a_submit(engine: AnyEngine) -> None:
    job = new_job()
    raw: Any = (
        psycopg.connect(engine.conninfo)
        if isinstance(engine, PostgresEngine)
        else sqlite3.connect(engine.path)
    )

    with raw:
        borrowed(Traced(Traced(raw)), engine).run(store.submit([job]))

    raw.close()
    assert seen(engine, job.id)


def test_what_only_says_that_it_wraps_is_refused(engine: AnyEngine) -> None:
    def decorated() -> None: ...

    decorated.__dict__["__wrapped__"] = decorated

    with pytest.raises(UnusableConnection, match=r"function cannot carry"):
        borrowed(decorated, engine)
