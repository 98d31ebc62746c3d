"""Our tables by `manage.py migrate`: the first migration makes them, and each later run brings what is newer.

Our own migrator does it, on a connection of its own: many starters at once are safe, and workers go on meanwhile. It
keeps its own ledger, so a new release of Fencerow needs no new migration file of Django's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.core.management.base import CommandError
from django.db import connections

from fencerow.app import App
from fencerow.django.following import DjangoApp
from fencerow.django.project import project_app
from fencerow.django.settings import read_settings
from fencerow.errors import FencerowError


def make_tables(_apps: Any, schema_editor: Any) -> None:
    """What the migration runs. In a database that is not that of the jobs it does nothing.

    Raises:
        CommandError: the tables are newer than this Fencerow, or cannot be made; nothing was changed.
    """
    bring_up(schema_editor.connection.alias)


def after_migrate(using: str, verbosity: int = 1, stdout: Any = None, **_: Any) -> None:
    """After each `manage.py migrate`: bring what the installed Fencerow has more than the tables, and say so."""
    tell = partial(print, file=stdout) if verbosity >= 1 else _nobody
    bring_up(using, tell)


def bring_up(alias: str, tell: Callable[[str], object] = lambda _: None) -> None:
    """Migrate the database of the jobs, if it is the one of that alias.

    Raises:
        CommandError: see `make_tables`.
    """
    if alias != alias_of_jobs():
        return
    app = project_app()
    try:
        done = app.migrate()
    except FencerowError as error:
        raise CommandError(f"Fencerow's tables: {error.line}") from error
    finally:
        app.close()  # processes that are forked from this one, as parallel tests are, open their own
    for name in done:
        tell(f"  Fencerow's tables: {name}")
    _close_before_drop(alias, app)


def alias_of_jobs() -> str:
    """In which entry of DATABASES the jobs are."""
    app = project_app()
    return app.alias if isinstance(app, DjangoApp) else read_settings().database


def _close_before_drop(alias: str, app: App) -> None:
    """Django's test runner drops its database, which PostgreSQL refuses while our connections are open."""
    creation: Any = connections[alias].creation
    theirs = creation.destroy_test_db
    if getattr(theirs, "closes_fencerow", False):
        return

    @wraps(theirs)
    def destroy_test_db(*args: Any, **kwargs: Any) -> Any:
        app.close()
        return theirs(*args, **kwargs)

    destroy_test_db.closes_fencerow = True  # type: ignore[attr-defined]
    creation.destroy_test_db = destroy_test_db


def _nobody(_text: str) -> None:
    """Nobody wants to hear it."""
