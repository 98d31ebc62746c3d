"""`Database`: where primitives work in a program that has no jobs of its own."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from fencerow.app.opening import default_actor, make_ready, placed, settings_of
from fencerow.config import Config
from fencerow.db.engine import Engine
from fencerow.store.connect import open_engine


class Database:
    """A database with Fencerow's tables, for `Mutex`, `Transitions` and the others without an `App`.

    It is named and opened as an app's is: by `url`, else by `config`, else by FENCEROW_URL, else it is the
    SQLite file `fencerow.db` in the working directory. Nothing is opened before it is needed.

    Raises:
        ConfigError: a setting cannot be used. UrlError: the URL names no database we can use.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        config: Config | None = None,
        schema: str | None = None,
        table_prefix: str | None = None,
        actor: str | None = None,
    ) -> None:
        named = settings_of(
            os.environ, config, url=url, schema=schema, table_prefix=table_prefix, actor=actor
        )
        self.config = placed(named, Path.cwd())
        self.actor = self.config.actor or default_actor()
        self._opening = threading.RLock()
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The database. Made at the first use; connections are opened when an operation needs one."""
        with self._opening:
            if self._engine is None:
                self._engine = open_engine(self.config)
            return self._engine

    def check_or_create(self) -> None:
        """Look whether the tables are what this code needs; on SQLite missing ones are made.

        Raises:
            SchemaMissing, SchemaTooOld: run `fencerow migrate`.
            SchemaTooNew, SchemaTampered: this code must not work with this database.
        """
        make_ready(self.engine, self.actor)

    def close(self) -> None:
        """Close the connections. A later use opens them again."""
        with self._opening:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    async def aclose(self) -> None:
        """`close` for async code: those of this event loop first."""
        with self._opening:
            engine, self._engine = self._engine, None
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
