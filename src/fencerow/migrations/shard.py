"""A shard as it was declared: where it is, and a connection to it or the reason why there is none."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from fencerow.core.errors import DatabaseError, FencerowError
from fencerow.db.url import DatabaseUrl, PostgresUrl, SqliteUrl, masked, parse_url
from fencerow.migrations.direct import Direct, PostgresDirect, SqliteDirect
from fencerow.migrations.errors import InvalidMigrations, ShardUnreachable
from fencerow.migrations.ledger import Ledger

NAME_LENGTH_MAX = 80


@dataclass(frozen=True, slots=True)
class Shard:
    """One database of the user's under the name that reports use."""

    name: str
    url: DatabaseUrl

    @property
    def dialect(self) -> str:
        return "postgres" if isinstance(self.url, PostgresUrl) else "sqlite"

    @property
    def is_absent(self) -> bool:
        """Whether it is a file that was never made, where one may be."""
        return (
            isinstance(self.url, SqliteUrl)
            and not Path(self.url.path).exists()
            and Path(self.url.path).absolute().parent.is_dir()
        )

    @property
    def place(self) -> object:
        """Equal for two URLs of one database, as far as they can tell."""
        if isinstance(self.url, SqliteUrl):
            return Path(self.url.path).resolve()
        try:
            found = conninfo_to_dict(self.url.conninfo)
        except psycopg.ProgrammingError:
            return self.url.conninfo
        return tuple(str(found.get(part) or "") for part in ("host", "hostaddr", "port", "dbname"))

    def connect(
        self,
        ledger: Ledger,
        *,
        connect_timeout_s: float,
        busy_timeout_s: float,
        writes: bool = True,
        session: str | None = None,
    ) -> Direct:
        """Open a connection, on a server under the application name `session` if it is given.

        Raises:
            ShardUnreachable: none came about; the database's own reason is in `why`.
        """
        try:
            if isinstance(self.url, PostgresUrl):
                return PostgresDirect(
                    self.url.conninfo,
                    ledger.queries("postgres"),
                    connect_timeout_s=connect_timeout_s,
                    session=session,
                )
            return SqliteDirect(
                Path(self.url.path), ledger.queries("sqlite"), busy_timeout_s=busy_timeout_s, writes=writes
            )
        except DatabaseError as error:
            raise unreachable(self, error.why or error.what) from error
        except sqlite3.Error as error:
            raise unreachable(self, str(error)) from error

    def __str__(self) -> str:
        return masked(self.url.conninfo) if isinstance(self.url, PostgresUrl) else self.url.path


def unreachable(shard: Shard, why: str) -> ShardUnreachable:
    return ShardUnreachable(
        f"shard {shard.name} ({shard}) cannot be reached",
        why,
        "run it again when the shard is back: it does what is left",
    )


def declared(shards: str | Mapping[str, str]) -> dict[str, Shard]:
    """The shards by name; a single URL is the shard `main`.

    Raises:
        InvalidMigrations: there is none, a name cannot be used, or two names lead to one database.
        UrlError: a URL names no database that Fencerow can use.
    """
    named = {"main": shards} if isinstance(shards, str) else dict(shards)
    if not named:
        raise InvalidMigrations(
            "no shards were named", "at least one database is migrated", "give a URL, or name: URL"
        )
    found: dict[str, Shard] = {}
    places: dict[object, str] = {}
    for name, url in named.items():
        if not name or len(name) > NAME_LENGTH_MAX or not name.isprintable():
            raise InvalidMigrations(
                f"the shard name {ascii(name)[:100]} cannot be used",
                f"printable text of 1 to {NAME_LENGTH_MAX} characters is expected",
                "choose another",
            )
        try:
            found[name] = Shard(name, parse_url(url))
        except FencerowError as error:
            error.what = f"shard {name}: {error.what}"
            raise
        other = places.setdefault(found[name].place, name)
        if other != name:
            raise InvalidMigrations(
                f"shards {other} and {name} are one database",
                "each database must be one shard",
                "correct the URL of one of them",
            )
    return found
