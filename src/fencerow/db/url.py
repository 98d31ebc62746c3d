"""Database URLs: which engine, and where. Passwords never leave this file in a message."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from fencerow.db.errors import UrlError

SCHEME = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9]*)(?:\+(?P<driver>[A-Za-z0-9_]+))?:(?P<rest>.*)", re.DOTALL
)
# Up to the last @: a password may hold an unescaped one.
USER_PART = re.compile(r"((?:://|^(?![A-Za-z0-9+]+://))[^:@/?#]*):.*@", re.DOTALL)
# Without quotes everything up to the next & counts as the password: rather hide too much.
SECRET_SETTING = re.compile(r"(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'(?=[\s&]|$)|[^&]*)", re.IGNORECASE)
FORMS = "sqlite:///file.db, sqlite:////folder/file.db or postgresql://user@host/database"


@dataclass(frozen=True, slots=True)
class SqliteUrl:
    """A SQLite file; a relative path counts from the working directory."""

    path: str


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """A PostgreSQL database, as libpq reads it. The conninfo may hold a password, so it is never printed."""

    conninfo: str = field(repr=False)

    def __str__(self) -> str:
        return masked(self.conninfo)


DatabaseUrl = SqliteUrl | PostgresUrl


def parse_url(url: object) -> DatabaseUrl:
    """Understand a database URL. The driver in SQLAlchemy's form (`postgresql+asyncpg://`) is left out.

    Raises:
        UrlError: it names no database we can use; `fix` shows the nearest form that would do.
    """
    if not isinstance(url, str):
        raise UrlError(
            f"the database URL is of type {type(url).__name__}", f"expected {FORMS}", "pass it as text"
        )
    if not url.strip():
        raise UrlError("the database URL is empty", f"expected {FORMS}", "set FENCEROW_URL or pass --url")
    found = SCHEME.fullmatch(url.strip())
    scheme = found["scheme"].lower() if found else ""
    known = scheme in ("sqlite", "postgresql", "postgres")
    if known and re.search(r"[\x00-\x20\x7f]", url.strip()):
        raise _refused(
            url, "it contains a space or control character", "write it percent-encoded, a space as %20"
        )
    if found and scheme == "sqlite":
        return _sqlite(url, found["rest"])
    if found and known:
        return _postgres(url, found["rest"])
    raise _refused(url, "only SQLite and PostgreSQL are supported", _nearest(url, scheme))


def masked(url: str) -> str:
    """The URL or connection string without its password, for messages and logs."""
    return SECRET_SETTING.sub(r"\1***", USER_PART.sub(r"\1:***@", url))


def _sqlite(url: str, rest: str) -> SqliteUrl:
    path, _, query = rest.removeprefix("///").partition("?")
    path = unquote(path)
    if ":memory:" in rest or rest in ("", "//", "///"):
        raise _refused(
            url,
            "a database in memory is lost with its connection, and so are its jobs",
            "use sqlite:///fencerow.db",
        )
    if not rest.startswith("///"):
        name = "fencerow.db" if "@" in rest or "?" in rest else rest.lstrip("/")
        raise _refused(
            url,
            "three slashes stand before a relative path, four before an absolute one",
            f"use sqlite:///{name}",
        )
    if query or "#" in rest or "\0" in path or path.endswith("/"):
        raise _refused(url, "a path to a file, without options, is expected", "use sqlite:///file.db")
    return SqliteUrl(path)


def _postgres(url: str, rest: str) -> PostgresUrl:
    if not rest.startswith("//"):
        raise _refused(url, "two slashes stand before the host", "use postgresql://user@host/database")
    return PostgresUrl(f"postgresql:{rest}")


def _nearest(url: str, scheme: str) -> str:
    if "=" in url and not scheme:
        return "use postgresql://user@host/database instead of key=value pairs"
    if not scheme and url.endswith((".db", ".sqlite", ".sqlite3")):
        return f"use sqlite:///{url}"
    close = {
        "sqlite3": "sqlite",
        "file": "sqlite",
        "pg": "postgresql",
        "psql": "postgresql",
        "pgsql": "postgresql",
    }
    if close.get(scheme) == "sqlite":
        return "use sqlite:///file.db"
    if close.get(scheme) == "postgresql":
        return "use postgresql://user@host/database"
    return f"use {FORMS}"


def _refused(url: str, why: str, fix: str) -> UrlError:
    shown = masked(url)
    return UrlError(f"the database URL {ascii(shown)[1:-1][:200]} cannot be used", why, fix)
