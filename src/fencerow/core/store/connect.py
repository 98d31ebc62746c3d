"""From settings to an engine: the one place that knows which database a URL means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fencerow.core.config import CoreConfig
from fencerow.core.errors import NoDatabase
from fencerow.core.store.tables import postgres_queries, sqlite_queries
from fencerow.db.url import PostgresUrl, parse_url

if TYPE_CHECKING:
    from fencerow.db.postgres import PostgresEngine
    from fencerow.db.sqlite import SqliteEngine

DEFAULT_FILE = "fencerow.db"
DEFAULT_URL = f"sqlite:///{DEFAULT_FILE}"


def open_engine(config: CoreConfig) -> PostgresEngine | SqliteEngine:
    """The engine for the settings' database. Nothing is connected or created yet.

    Raises:
        NoDatabase: the settings name no database. Whoever wants the default says `DEFAULT_URL`.
        UrlError: the URL cannot be used.
    """
    if config.url is None:
        raise NoDatabase(
            "no database was named",
            f"neither --url nor FENCEROW_URL names one, nor an application (-A), and there is no {DEFAULT_FILE} here",
            "give --url or set FENCEROW_URL: postgresql://user@host/database, or sqlite:///hello.db for a file",
        )
    url = parse_url(config.url)
    if isinstance(url, PostgresUrl):
        from fencerow.db.postgres import PostgresEngine  # with its driver: only where it is used

        return PostgresEngine(
            url.conninfo,
            postgres_queries(config.schema),
            schema=config.schema,
            listen_conninfo=_listen_conninfo(config),
            pool_max=config.pool_max,
            connect_timeout_s=config.connect_timeout_s,
            statement_timeout_s=config.statement_timeout_s,
            prepares=config.prepared_statements == "auto",
        )
    from fencerow.db.sqlite import SqliteEngine

    return SqliteEngine(
        Path(url.path),
        sqlite_queries(config.table_prefix),
        prefix=config.table_prefix,
        busy_timeout_s=config.busy_timeout_s,
        journal_mode=None if config.journal_mode == "auto" else config.journal_mode,
    )


def _listen_conninfo(config: CoreConfig) -> str | None:
    listen = parse_url(config.listen_url) if config.listen_url else None
    return listen.conninfo if isinstance(listen, PostgresUrl) else None
