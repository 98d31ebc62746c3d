"""Django's connection: what `django.db.connection` or `connections[alias]` stands for, down to the driver's own.

Django sends its own BEGIN and SAVEPOINT on the driver's connection, so that connection knows how it stands, and what we
send in a savepoint of ours is nothing to Django.
"""

from __future__ import annotations

from typing import Any

from fencerow.db.adapters.frame import failed
from fencerow.db.errors import UnusableConnection

VENDORS = ("postgresql", "sqlite")


def driver_of(connection: Any) -> Any:
    """The driver's connection of this thread; it is opened if Django has not needed it yet.

    Raises:
        UnusableConnection: it is none to PostgreSQL or SQLite, or an `atomic()` around it must be rolled back first.
    """
    vendor = getattr(connection, "vendor", None)
    if vendor not in VENDORS:
        raise UnusableConnection(
            f"Django's connection {getattr(connection, 'alias', '?')!r} is to {vendor or 'no database'}",
            "the jobs are kept in PostgreSQL or SQLite",
            "pass the connection to the database of the jobs",
        )
    connection.ensure_connection()
    if connection.needs_rollback:
        raise failed(f"Django connection {connection.alias!r}")
    return connection.connection
