"""Binds the user's app to a test's database, and moves the time of that database."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fencerow.app import App
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.store import store
from fencerow.testing.clock import DatabaseClock, clock_of
from fencerow.testing.drain import drain
from fencerow.testing.errors import NoTestApp


def named_app(name: str) -> App:
    """The app of `module:attribute`, as pytest's configuration names it.

    Raises:
        NoTestApp: none is named, or there is no app of that name. What importing it raises comes unchanged.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name:
        raise NoTestApp(
            "pytest's configuration names no app",
            "the fixture fencerow_app binds your app to the test's database",
            "set fencerow_app = myproject.jobs:app there, or override the fixture fencerow_user_app",
        )
    found = getattr(importlib.import_module(module_name), attribute or "app", None)
    if not isinstance(found, App):
        raise NoTestApp(
            f"{name!r} is no app",
            f"module {module_name} has {type(found).__name__ if found is not None else 'nothing'} there",
            "name it as module:attribute",
        )
    return found


@contextmanager
def bound(app: App, url: str) -> Iterator[App]:
    """Let an app use another database inside the block; afterwards it has its own again, not yet opened."""
    settings, was_named = app.config, app.is_named
    app.close()
    app.config, app.is_named = replace(settings, url=url, listen_url=None), True
    try:
        yield app
    finally:
        app.close()
        app.config, app.is_named = settings, was_named


def begin(app: App) -> None:
    """What is there before a test begins, as if a worker had run before: limits, schedules, groups of consumers.

    Entities of schedules are not asked for yet: the test has not made them.
    """
    app.declare_limits()
    if app.declares_schedules:
        app.schedules.reconcile()
    if app.chores:
        from fencerow.schedules.chores import DeclaredChore

        drain(app, without=[DeclaredChore.name])


class Clock:
    """Moves the time that the app's database goes by: delays pass, retries and leases become due.

    On PostgreSQL every client of the database sees it; SQLite has no clock of its own, so there it moves for the
    app of this process alone. Python's own clock stays.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._moved: DatabaseClock | None = None

    def advance(
        self, seconds: Seconds = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> None:
        """Let so much time pass at once; a negative number goes back, as a server's clock may."""
        if self._moved is None:
            self._moved = clock_of(self._app.engine)
        self._moved.advance(
            timedelta(seconds=in_seconds(seconds), minutes=minutes, hours=hours, days=days).total_seconds()
        )

    def now(self) -> datetime:
        """What time it is in the database."""
        return datetime.fromtimestamp(self._app.engine.run(store.clock()) / 1e6, UTC)
