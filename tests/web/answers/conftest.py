"""An app on a database of each kind, and a stranger who can keep its jobs locked."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest

from fencerow import App
from tests.web.gateway.conftest import app as app
from tests.web.gateway.conftest import door as door
from tests.web.gateway.conftest import gateway as gateway
from tests.web.gateway.conftest import http as http
from tests.web.gateway.conftest import lite_app as lite_app
from tests.web.gateway.conftest import url as url

Lock = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def locked(app: App, url: str) -> Lock:
    """While it lasts nobody can store a job: a stranger has the table, or the file."""
    return lambda: _locked(app, url)


@contextlib.contextmanager
def _locked(app: App, url: str) -> Iterator[None]:
    if app.engine.dialect == "sqlite":
        with contextlib.closing(
            sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        ) as lite:
            lite.execute("BEGIN IMMEDIATE")
            yield
            lite.execute("ROLLBACK")
        return
    with psycopg.connect(url) as stranger:
        stranger.execute("LOCK TABLE fencerow.jobs IN ACCESS EXCLUSIVE MODE")
        yield
        stranger.rollback()
