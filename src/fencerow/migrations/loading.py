"""From `module:name` to a migrator."""

from __future__ import annotations

from fencerow.command.app_loading import loaded
from fencerow.core.errors import ConfigError
from fencerow.migrations import Migrator


def load_migrator(name: str | None) -> Migrator:
    """Import a migrator in the same way.

    Raises:
        ConfigError: none was named, or it cannot be found or imported.
        FencerowError: what it raised itself while it was declared, such as `InvalidMigrations`.
    """
    if not name:
        raise ConfigError(
            "no migrator was named",
            "it names the shards and the folder of their migrations",
            "give -A module:migrator",
        )
    return loaded(name, Migrator, "migrator", title="Migrator", usual="migrator", arguments="...")
