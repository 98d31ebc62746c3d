"""`Database`: a place with Fencerow's tables. What an app is besides its jobs, and enough for primitives alone."""

from __future__ import annotations

import getpass
import os
import socket
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from fencerow.core.answering import answer
from fencerow.core.composed import config_type
from fencerow.core.config import CoreConfig
from fencerow.core.errors import Busy, DeclarationError, SchemaMissing, SchemaTooOld
from fencerow.core.locator import note_ready
from fencerow.core.store import store
from fencerow.core.store.connect import DEFAULT_URL, open_engine
from fencerow.db.engine import Engine
from fencerow.db.url import PostgresUrl, SqliteUrl, parse_url

ACTOR_LENGTH_MAX = 200


class LocalDatabaseWarning(UserWarning):
    """No database was named, so jobs are kept in a SQLite file in the working directory."""


@answer
class Database:
    """A database with Fencerow's tables, for `Mutex`, `Transitions` and the other guards in programs without an `App`.

    It is named by `url`, else by `config`, else by FENCEROW_URL; without any it is the SQLite file
    `fencerow.db` in the working directory, with a `LocalDatabaseWarning`. Nothing is opened before it is
    needed. Close it when done, or use it as a context manager.

    Raises:
        ConfigError: a setting cannot be used. UrlError: the URL names no database that Fencerow can use.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        config: CoreConfig | None = None,
        schema: str | None = None,
        table_prefix: str | None = None,
        actor: str | None = None,
    ) -> None:
        named = settings_of(
            os.environ, config, url=url, schema=schema, table_prefix=table_prefix, actor=actor
        )
        self.config = placed(named, Path.cwd())
        self.is_named = named.url is not None  # else the database is the local file that nobody chose
        self._actor = self.config.actor or default_actor()
        self._opening = threading.RLock()
        self._engine: Engine | None = None
        self._wrap: Callable[[Engine], Engine] | None = None

    @property
    def actor(self) -> str:
        """The name under which this program's changes are recorded."""
        return self._actor

    @property
    def engine(self) -> Engine:
        """What runs operations on the database. It is made at the first use, and opens a connection when an
        operation needs one."""
        with self._opening:
            if self._engine is None:
                if not self.is_named:
                    warn_of_local_file(self.config)
                opened = open_engine(self.config)
                self._engine = opened if self._wrap is None else self._wrap(opened)
            return self._engine

    def migrate(self) -> list[str]:
        """Apply the migrations that the database lacks; returns their names.

        Raises:
            SchemaTooNew, SchemaTampered: this code must not work with this database.
            Busy: somebody else is migrating.
        """
        return [each.name for each in store.migrate(self.engine, actor=self.actor)]

    def check(self) -> None:
        """Check that the tables are what this code needs.

        Raises:
            SchemaMissing, SchemaTooOld: run `fencerow migrate`.
            SchemaTooNew, SchemaTampered: this code must not work with this database.
        """
        store.check_schema(self.engine)

    def check_or_create(self) -> None:
        """Like `check`, but on SQLite create missing tables. This happens by itself before the first use."""
        make_ready(self.engine, self.actor)

    def wrap_engine(self, wrap: Callable[[Engine], Engine]) -> None:
        """Put an engine of one's own before the database's, once it is opened: for tests that watch or disturb.

        Raises:
            DeclarationError: the database is in use already, or was wrapped before.
        """
        with self._opening:
            if self._engine is not None or self._wrap is not None:
                raise DeclarationError(
                    "the engine cannot be wrapped now",
                    "it is in use, or was wrapped before",
                    "wrap it once, before the first use of the app or database",
                )
            self._wrap = wrap

    def close(self) -> None:
        """Close the connections. A later use opens them again."""
        engine = self._without_engine()
        if engine is not None:
            engine.close()

    async def aclose(self) -> None:
        """`close` for async code: those of this event loop first."""
        engine = self._without_engine()
        if engine is not None:
            await engine.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _without_engine(self) -> Engine | None:
        with self._opening:
            engine, self._engine = self._engine, None
            return engine


def settings_of(
    environ: Mapping[str, str],
    config: CoreConfig | None,
    *,
    url: str | None,
    schema: str | None,
    table_prefix: str | None,
    actor: str | None,
) -> CoreConfig:
    """The settings of an app: arguments win over `config`, or over the environment when there is no config.

    Raises:
        ConfigError: a setting cannot be used. UrlError: the URL names no database that Fencerow can use.
    """
    if url is not None:
        parse_url(url)  # also when it is empty: somebody meant to name a database
    given: dict[str, Any] = {"url": url, "schema": schema, "table_prefix": table_prefix, "actor": actor}
    if config is None:
        return config_type().load(environ, **given)
    if config.url is None and url is None:
        given["url"] = environ.get("FENCEROW_URL", "").strip() or None
    return replace(config, **{name: value for name, value in given.items() if value is not None})


def placed(config: CoreConfig, folder: Path) -> CoreConfig:
    """The settings with the database's place fixed: a relative path means the same after a later chdir."""
    url = parse_url(config.url or DEFAULT_URL)
    if isinstance(url, PostgresUrl):
        return config
    return replace(config, url=f"sqlite:///{quote(str(folder / url.path))}")


def warn_of_local_file(config: CoreConfig) -> None:
    """Say where the jobs will lie, since nobody chose the place."""
    file = parse_url(config.url or DEFAULT_URL)
    path = file.path if isinstance(file, SqliteUrl) else str(file)
    text = f"no database was named, so jobs are kept in {path}; pass a URL to App() or set FENCEROW_URL"
    warnings.warn(text, LocalDatabaseWarning, stacklevel=2)


def make_ready(engine: Engine, actor: str | None) -> None:
    """Before the first use: a SQLite file gets its tables, a PostgreSQL database must have them.

    Raises:
        SchemaMissing, SchemaTooOld: run `fencerow migrate`.
        SchemaTooNew, SchemaTampered: this code must not work with this database.
        Busy: the tables are missing, and somebody writes to the file, perhaps the caller's own transaction.
    """
    try:
        store.check_schema(engine)
    except (SchemaMissing, SchemaTooOld):
        if not engine.traits.sets_itself_up:
            raise
        _make_tables(engine, actor)
    note_ready(engine)


def _make_tables(engine: Engine, actor: str | None) -> None:
    try:
        store.migrate(engine, actor=actor, wait_s=0.0)  # the engine waits for a writer already
    except Busy as error:
        raise Busy(
            "Fencerow's tables are missing, and cannot be made while somebody writes to the file",
            error.what,
            "if a transaction of yours is open, call `app.migrate()` or run `fencerow migrate` before it",
        ) from error


def default_actor() -> str:
    """Who is named in the audit trail when nobody said: user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    text = f"{user}@{socket.gethostname()}"
    return "".join(character for character in text if character.isprintable())[:ACTOR_LENGTH_MAX]
