"""The engine that a command works with: opened late, checked first, closed always."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from fencerow.command.app_loading import load_app
from fencerow.command.options import CommandOptions
from fencerow.command.times import Times
from fencerow.core.app import JobsApp
from fencerow.core.client.base import ClientBase
from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError
from fencerow.core.model.person import Person, Via
from fencerow.core.schema.migrate import check_schema, refuse_foreign
from fencerow.core.store import store
from fencerow.core.store.connect import DEFAULT_URL, open_engine
from fencerow.core.wing import witnessed
from fencerow.db.engine import Engine
from fencerow.db.probe_sqlite import reach_sqlite
from fencerow.db.text import storable
from fencerow.db.url import PostgresUrl, SqliteUrl, parse_url


def resolved(asked: CommandOptions, *, default: bool = False) -> CoreConfig:
    """The settings, with the database from --url, -A, FENCEROW_URL or FENCEROW_APP: the first of these counts.

    With `default`, or where its file lies in the working directory, the default SQLite file comes last.
    """
    app, config = asked_app(asked), asked.config()
    if app is not None:
        config = app.config
    if config.url is None and (default or Path(parsed_path(DEFAULT_URL)).exists()):
        config = replace(config, url=DEFAULT_URL)
    return config


def asked_app(asked: CommandOptions) -> JobsApp | None:
    """The application whose settings count: from -A, or from FENCEROW_APP where nothing else names the database."""
    if asked.url is None and asked.app is not None:
        return load_app(asked.app)
    if asked.config().url is None and asked.app_name() is not None:
        return load_app(asked.app_name())
    return None


def parsed_path(url: str) -> str:
    """The path in a SQLite URL."""
    found = parse_url(url)
    assert isinstance(found, SqliteUrl)
    return found.path


Reach = Callable[[PostgresUrl, CoreConfig], None]


def reach_at_once(url: PostgresUrl, config: CoreConfig) -> None:
    """Raises:
    UrlError, Unavailable: why the server cannot be used.
    """
    from fencerow.db.probe import reach_postgres  # with its driver: only where it is used

    reach_postgres(url.conninfo, config.connect_timeout_s)


def reach(config: CoreConfig, reach_server: Reach = reach_at_once) -> None:
    """Say why the database cannot be used, and make nothing. `reach_server` raises why a server cannot: at once, unless
    it has patience."""
    if config.url is None:
        return  # open_engine says what is missing
    url = parse_url(config.url)
    if isinstance(url, SqliteUrl):
        reach_sqlite(Path(url.path))
    else:
        reach_server(url, config)


A = TypeVar("A", bound=JobsApp)


@contextmanager
def opened(config: CoreConfig) -> Iterator[Engine]:
    """An engine on a database that answers; nothing is known of its tables."""
    engine = open_engine(config)
    try:
        yield engine
    finally:
        engine.flush(1.0)
        engine.close()


@contextmanager
def working(asked: CommandOptions, *, reach_server: Reach = reach_at_once) -> Iterator[Engine]:
    """An engine on a database whose tables this code can work with."""
    config = resolved(asked)
    reach(config, reach_server)
    with opened(config) as engine:
        refuse_foreign(engine)
        check_schema(engine)
        yield engine


@contextmanager
def prepared(
    app: A, asked: CommandOptions, *, migrate: bool = False, reach_server: Reach = reach_at_once
) -> Iterator[A]:
    """An application on a database that answers; closed at the end. `reach_server` raises why a server does not.

    A SQLite file is made where there is none, as the library does.
    """
    refuse_contradiction(asked, app.config)
    url = parse_url(app.config.url) if app.config.url else None
    if isinstance(url, PostgresUrl):
        reach_server(url, app.config)
    try:
        if migrate:
            app.migrate()
        app.check_or_create()
        yield app
    finally:
        app.close()


def times(engine: Engine, asked: CommandOptions) -> Times:
    """How instants are told: from the database's clock as it stands now."""
    return Times(engine.run(store.clock()), asked.utc)


def actor(config: CoreConfig | None = None) -> str:
    """Who is named in the audit trail: the setting, else user and host."""
    named = config.actor if config else os.environ.get("FENCEROW_ACTOR", "").strip()
    if named:
        return named
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return storable(
        f"{user}@{socket.gethostname()}"
    )  # the environment names the user, and may hold any bytes


def in_person(engine: Engine, asked: CommandOptions) -> Engine:
    """The engine by which whoever calls the command changes something."""
    return witnessed(engine, Person(actor(asked.config()), Via.COMMAND))


def acting(engine: Engine, asked: CommandOptions) -> ClientBase:
    """What verbs run by that change something, under the name of whoever calls the command."""
    return ClientBase(in_person(engine, asked), actor=actor(asked.config()))


def refuse_contradiction(asked: CommandOptions, config: CoreConfig) -> None:
    """An application that names its own database is not silently run on it when another was asked for."""
    if asked.url is not None and _place(asked.url) != _place(config.url or DEFAULT_URL):
        raise ConfigError(
            "the application names its own database, and --url another",
            "the application submits to its own database",
            "leave out --url, or let the application read FENCEROW_URL",
        )


def _place(url: str) -> PostgresUrl | Path:
    """What two URLs of one database have in common."""
    found = parse_url(url)
    return Path(os.path.realpath(found.path)) if isinstance(found, SqliteUrl) else found
