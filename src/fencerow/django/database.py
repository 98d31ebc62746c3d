"""From a connection of Django's settings to the URL by which Fencerow opens its own connections to that database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.connection import ConnectionDoesNotExist
from psycopg.pq import Conninfo

from fencerow.django.errors import UnusableDjangoDatabase


def url_of(alias: str) -> str:
    """The URL of the database of that alias, as it is now: Django's test runner gives it another one.

    Raises:
        UnusableDjangoDatabase: there is no such alias, or its database cannot keep jobs.
    """
    try:
        wrapper: Any = connections[alias]
    except (ConnectionDoesNotExist, ImproperlyConfigured) as error:
        raise UnusableDjangoDatabase(
            f"the database {alias!r} cannot be used",
            str(error),
            "name an entry of DATABASES in FENCEROW['DATABASE']",
        ) from None
    if wrapper.vendor == "sqlite":
        return _sqlite(alias, str(wrapper.settings_dict["NAME"]))
    if wrapper.vendor == "postgresql":
        return _postgres(wrapper.get_connection_params())
    raise UnusableDjangoDatabase(
        f"the database {alias!r} is {wrapper.display_name}",
        "Fencerow keeps jobs in PostgreSQL or SQLite",
        "name another entry of DATABASES in FENCEROW['DATABASE']",
    )


def _sqlite(alias: str, name: str) -> str:
    if ":memory:" in name or "mode=memory" in name or not name:
        raise UnusableDjangoDatabase(
            f"the database {alias!r} is in memory",
            "nobody but the connection that made it sees it, so no worker could",
            f'for tests give it a file: DATABASES[{alias!r}]["TEST"] = {{"NAME": BASE_DIR / "test.sqlite3"}}',
        )
    if name.startswith("file:"):
        raise UnusableDjangoDatabase(
            f"the database {alias!r} is named by a URI",
            "Fencerow opens the file by its path",
            'give the plain path as "NAME"',
        )
    return f"sqlite:///{quote(str(Path(name).absolute()))}"


def _postgres(params: Mapping[str, Any]) -> str:
    """As libpq takes it: whatever Django passes on to it, and nothing that is psycopg's alone."""
    known = {each.keyword.decode() for each in Conninfo.get_defaults()}
    given = {name: str(value) for name, value in params.items() if name in known and value not in (None, "")}
    pairs = (f"{name}={quote(value, safe='')}" for name, value in sorted(given.items()))
    return f"postgresql:///?{'&'.join(pairs)}"
