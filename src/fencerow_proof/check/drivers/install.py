"""Which drivers there are here, and that nothing else reaches a database unseen."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from fencerow.db.url import PostgresUrl, parse_url
from fencerow_proof.check.drivers import on_psycopg, on_sqlite
from fencerow_proof.check.seam import Seam
from fencerow_proof.errors import CheckNeedsMore

# Imported now, before the starter forks: it takes longer than a run. Whoever has no asyncpg cannot use it.
_asyncpg: Any = (
    importlib.import_module("fencerow_proof.check.drivers.on_asyncpg") if find_spec("asyncpg") else None
)

# Drivers in C whose connections no hook of Python's sees.
UNSEEN = {"psycopg2": "_connect", "MySQLdb": "connect", "pyodbc": "connect", "oracledb": "connect"}


def lead_all(url: str, named: str) -> None:
    """Let every connection of this process go to the scratch database; `named` is the file that the app names."""
    place = parse_url(url)
    if isinstance(place, PostgresUrl):
        on_psycopg.lead(place.conninfo)
        if _asyncpg is not None:
            _asyncpg.lead(place.conninfo)
    else:
        on_sqlite.lead(Path(place.path), Path(named) if named else None)
        _refuse_postgres()
    for name, function in UNSEEN.items():
        if name in sys.modules:
            setattr(sys.modules[name], function, _refuser(name))


def watch_all(seam: Seam) -> None:
    """Lead every statement of this process through the seam."""
    on_psycopg.watch(seam)
    on_sqlite.watch(seam)
    if _asyncpg is not None:
        _asyncpg.watch(seam)


def _refuse_postgres() -> None:
    """A check on SQLite has no PostgreSQL to lead to, and must not reach the one that is named."""
    refuse = _refuser("psycopg")
    for kind in (psycopg.Connection, psycopg.AsyncConnection):
        setattr(kind, "_get_connection_params", classmethod(refuse))  # noqa: B010 (a method, to a type checker)
    if _asyncpg is not None:
        _asyncpg.connect_utils._connect = refuse


def _refuser(name: str) -> Callable[..., Any]:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise CheckNeedsMore(
            f"the handler connects to a database by {name}, which the check cannot lead to its own",
            "a check never touches another database than the one it made",
            "check it with the database that it works on (--url), or declare what does this as an outside call",
        )

    return refuse
