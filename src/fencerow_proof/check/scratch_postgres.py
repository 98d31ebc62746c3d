"""A scratch database on PostgreSQL: one that is set up once, and copies of it by CREATE DATABASE ... TEMPLATE."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict

from fencerow.db.engine import Engine
from fencerow_proof.check.scratch import Lent
from fencerow_proof.check.state import Reader
from fencerow_proof.check.state_postgres import PostgresReader, user_tables
from fencerow_proof.check.wire import Loaded
from fencerow_proof.errors import CheckNeedsMore, CheckStuck, ScratchNotEmpty

GONE_S = 10.0
# For a server of our own: it is the handler's processes that die here, never the server.
PRIVATE_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "deadlock_timeout": "200ms",
    "shared_buffers": "32MB",
}


class PostgresScratch:
    """Databases beside the empty one that was named, which itself stays as it is; they are dropped at the end.

    The copies begin with what is in the named one, such as extensions. Its role must be allowed to make databases.
    """

    def __init__(self, empty: str, parent: Path, loaded: Loaded) -> None:
        self._where = {
            name: str(value) for name, value in conninfo_to_dict(empty).items() if value is not None
        }
        self._schema = loaded.schema
        self._lent = Lent(loaded)
        self._base = f"fencerow_check_{secrets.token_hex(4)}"
        self._empty = self._where.get("dbname") or self._where.get("user") or "postgres"
        self._refuse_unless_empty()
        self._admin: Connection[Any] = psycopg.connect(self._url_of("postgres"), autocommit=True)
        # A copy of files takes two checkpoints: less time where nothing is flushed, and a burden to others where it is.
        self._copies_files = self._admin.execute("SHOW fsync").fetchone() == ("off",)
        self._pattern = f"{self._base}_pattern"
        self._database = self._pattern
        self._looking: Connection[Any] | None = None
        self.folder = parent / "files"
        self.folder.mkdir()
        self._create(self._pattern, self._empty)

    @property
    def url(self) -> str:
        return self._url_of(self._database)

    def keep(self) -> None:
        self._leave()
        self._database = f"{self._base}_copy"

    def fresh(self) -> None:
        self._leave()
        self._drop(self._database)
        self._create(self._database, self._pattern)

    def settle(self, backends: set[int]) -> None:
        until = time.monotonic() + GONE_S
        while self._admin.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid = ANY(%s) AND datname = %s",
            [list(backends), self._database],
        ).fetchone():
            if time.monotonic() > until:
                self._admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", [list(backends)]
                )
                until += GONE_S
            time.sleep(0.001)

    def blocked(self, backends: set[int]) -> bool:
        row = self._admin.execute(
            "SELECT bool_and(cardinality(pg_blocking_pids(pid)) > 0) FROM unnest(%s::int[]) pid",
            [list(backends)],
        ).fetchone()
        return bool(row and row[0])

    def engine(self) -> Engine:
        return self._lent.on(self.url)

    def reader(self) -> Reader:
        if self._looking is None:
            self._looking = psycopg.connect(self.url, autocommit=True)
        return PostgresReader(self._looking, self._schema)

    def close(self) -> None:
        self._leave()
        for name in (f"{self._base}_copy", self._pattern):
            self._drop(name)
        self._admin.close()

    def _leave(self) -> None:
        self._lent.close()
        if self._looking is not None:
            self._looking.close()
            self._looking = None

    def _create(self, name: str, template: str) -> None:
        wanted = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY {}").format(
            sql.Identifier(name),
            sql.Identifier(template),
            sql.SQL("FILE_COPY" if self._copies_files else "WAL_LOG"),
        )
        until = time.monotonic() + GONE_S
        while True:
            try:
                self._admin.execute(wanted)
                return
            except psycopg.errors.InsufficientPrivilege as error:
                raise CheckNeedsMore(
                    f"the role of the check's database may not copy {template}",
                    str(error).splitlines()[0],
                    "give it CREATEDB and let it own the empty database, or leave out --url for a private server",
                ) from None
            except psycopg.errors.ObjectInUse as error:
                if time.monotonic() > until:
                    raise CheckStuck(
                        f"somebody stays connected to {template}, so it cannot be copied",
                        str(error).splitlines()[0],
                        "the setup must close its connections; nobody else may use the database of a check",
                    ) from None
                time.sleep(0.005)  # a process that has ended is still connected for the server

    def _drop(self, name: str) -> None:
        self._admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _refuse_unless_empty(self) -> None:
        with psycopg.connect(self._url_of(self._empty), autocommit=True) as connection:
            tables = user_tables(connection, schema="")
        if tables:
            raise ScratchNotEmpty(
                f"the database of the check holds {len(tables)} tables, such as {tables[0]}",
                "a check makes and damages databases, so it needs an empty one",
                "name an empty database, never the one your application uses",
            )

    def _url_of(self, database: str) -> str:
        known = self._where
        user = quote(known["user"], safe="") if "user" in known else ""
        password = f":{quote(known['password'], safe='')}" if "password" in known else ""
        more = {name: value for name, value in known.items() if name not in ("user", "password", "dbname")}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in more.items())
        return f"postgresql://{user}{password}{'@' if user else ''}/{quote(database, safe='')}?{query}"
