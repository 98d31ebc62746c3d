"""Errors of Fencerow inside Django (956 to 959)."""

from __future__ import annotations

from fencerow.core.errors import ConfigError


class UnusableDjangoDatabase(ConfigError):
    """The database that Django's settings name cannot keep jobs: it is in memory, or no PostgreSQL and no SQLite."""

    code = "FR-956"


class InvalidDjangoSettings(ConfigError):
    """Django's setting FENCEROW, or the OPTIONS of a task backend, says something that cannot be understood."""

    code = "FR-957"
