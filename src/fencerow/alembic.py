"""Fencerow's tables in an application's Alembic history: a revision that brings them to a numbered migration.

    # a revision                                     # env.py
    from fencerow.alembic import upgrade_fencerow    from fencerow.alembic import include_name

    def upgrade() -> None:                           context.configure(..., include_name=include_name)
        upgrade_fencerow(op, to=8)

Nothing of Alembic is imported here: `op` is what a revision has already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from typing import Any, Protocol

from fencerow.config import Config
from fencerow.core.errors import ConfigError
from fencerow.core.schema.rooms import known_migrations
from fencerow.core.store import store
from fencerow.core.store.connect import open_engine

SCHEMA = "fencerow"
PREFIX = "fencerow_"

Include = Callable[["str | None", str, MutableMapping[Any, Any]], bool]


class AlembicOperations(Protocol):
    """What is asked of Alembic's `op`."""

    def get_bind(self) -> Any: ...

    def get_context(self) -> Any: ...


def upgrade_fencerow(
    op: AlembicOperations,
    *,
    to: int,
    url: str | None = None,
    schema: str = SCHEMA,
    table_prefix: str = PREFIX,
) -> list[str]:
    """Bring Fencerow's tables up to migration `to`; returns the names of those that this call applied.

    Run by Fencerow's own migrator, on a connection of its own to the database of the revision (`url` names it where
    the engine's URL does not say all, such as a password that a function gives). What Alembic has open is committed
    first. May be repeated: what is there stays, a newer schema too. If a later step of the revision fails, our tables
    keep what they have, and the next run goes on from there. There is no way down.

    Raises:
        ConfigError: this Fencerow knows no migration of that number, or Alembic only prints SQL.
        SchemaTooNew, SchemaTampered: nothing was changed; upgrade this process.
        Busy: another migrator held its lock all the time, or long transactions the tables'. Run it again.
    """
    context = op.get_context()
    if context.as_sql:
        raise ConfigError(
            "Fencerow's tables cannot be written as SQL by Alembic",
            "its migrations look at what is there, and some take several transactions",
            "run `fencerow sql` for the text, or run the upgrade online",
        )
    bound = op.get_bind().engine.url
    place = url or _url_of(bound)
    config = Config.load(os.environ, url=place, schema=schema, table_prefix=table_prefix)
    engine = open_engine(config)
    try:
        newest = known_migrations(engine.dialect)[-1].version
        if not 1 <= to <= newest:
            raise ConfigError(
                f"there is no migration {to}",
                f"this Fencerow knows 1 to {newest}",
                "name one of these, or install the Fencerow that the revision was written for",
            )
        with context.autocommit_block():
            return [each.name for each in store.migrate(engine, actor="alembic", to=to)]
    finally:
        engine.close()


def include_name(name: str | None, kind: str, parents: MutableMapping[Any, Any], /) -> bool:
    """Alembic's `include_name`: whether autogenerate looks at what the database has under this name.

    It leaves Fencerow's tables alone, and does not even read them.
    """
    return excluding()(name, kind, parents)


def excluding(*, schema: str = SCHEMA, table_prefix: str = PREFIX, also: Include | None = None) -> Include:
    """`include_name` for another schema or table prefix, or beside a rule of your own."""

    def include(name: str | None, kind: str, parents: MutableMapping[Any, Any], /) -> bool:
        if kind == "schema" and name == schema:
            return False
        if kind == "table" and (
            parents.get("schema_name") == schema or (name or "").startswith(table_prefix)
        ):
            return False
        return also is None or also(name, kind, parents)

    return include


def _url_of(bound: Any) -> str:
    """The URL of an engine as Fencerow takes it: without the driver."""
    kind = bound.get_backend_name()
    return str(bound.set(drivername=kind).render_as_string(hide_password=False))
