"""Which database an app uses, and opening it: nothing here touches it before it is needed."""

from __future__ import annotations

import getpass
import logging
import os
import socket
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fencerow.core.config import Config
from fencerow.core.db.engine import Engine
from fencerow.core.db.ready import note_ready
from fencerow.core.errors import SchemaMissing, SchemaTooOld
from fencerow.core.model.url import PostgresUrl, SqliteUrl, parse_url
from fencerow.core.store import store
from fencerow.core.store.connect import DEFAULT_URL

log = logging.getLogger("fencerow")

ACTOR_LENGTH_MAX = 200


class LocalDatabaseWarning(UserWarning):
    """No database was named, so jobs are kept in a SQLite file in the working directory."""


def settings_of(
    environ: Mapping[str, str],
    config: Config | None,
    *,
    url: str | None,
    schema: str | None,
    table_prefix: str | None,
    actor: str | None,
) -> Config:
    """The settings of an app: arguments win over `config`, or over the environment when there is no config.

    Raises:
        ConfigError: a setting cannot be used. UrlError: the URL names no database we can use.
    """
    if url is not None:
        parse_url(url)  # also when it is empty: somebody meant to name a database
    given: dict[str, Any] = {"url": url, "schema": schema, "table_prefix": table_prefix, "actor": actor}
    if config is None:
        return Config.load(environ, **given)
    if config.url is None and url is None:
        given["url"] = environ.get("FENCEROW_URL", "").strip() or None
    return replace(config, **{name: value for name, value in given.items() if value is not None})


def placed(config: Config, folder: Path) -> Config:
    """The settings with the database's place fixed: a relative path means the same after a later chdir."""
    url = parse_url(config.url or DEFAULT_URL)
    if isinstance(url, PostgresUrl):
        return config
    return replace(config, url=f"sqlite:///{quote(str(folder / url.path))}")


def warn_of_local_file(config: Config) -> None:
    """Say where the jobs will lie, since nobody chose the place."""
    file = parse_url(config.url or DEFAULT_URL)
    path = file.path if isinstance(file, SqliteUrl) else str(file)
    text = f"no database was named, so jobs are kept in {path}; pass a URL to App() or set FENCEROW_URL"
    log.warning(text)
    warnings.warn(text, LocalDatabaseWarning, stacklevel=2)


def make_ready(engine: Engine, actor: str | None) -> None:
    """Before the first use: a SQLite file gets its tables, a PostgreSQL database must have them.

    Raises:
        SchemaMissing, SchemaTooOld: run `fencerow migrate`.
        SchemaTooNew, SchemaTampered: this code must not work with this database.
    """
    try:
        store.check_schema(engine)
    except (SchemaMissing, SchemaTooOld):
        if engine.dialect != "sqlite":
            raise
        store.migrate(engine, actor=actor)
    note_ready(engine)


def default_actor() -> str:
    """Who is named in the audit trail when nobody said: user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    text = f"{user}@{socket.gethostname()}"
    return "".join(character for character in text if character.isprintable())[:ACTOR_LENGTH_MAX]
