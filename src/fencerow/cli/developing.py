"""The dashboard beside `fencerow dev`, for whoever develops."""

from __future__ import annotations

import contextlib
import getpass
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from fencerow.config import Config
from fencerow.core.app import JobsApp
from fencerow.core.config import COMMAND_PREFIX
from fencerow.core.store.connect import DEFAULT_URL

if TYPE_CHECKING:
    from fencerow.app import App
    from fencerow.web.dashboard.asgi import Dashboard
    from fencerow.web.dashboard.redacting import Declared

PORT = 8090
VARIABLE = f"{COMMAND_PREFIX}DEV_SECRET"


def new_secret() -> str:
    """What makes the address one that nobody guesses. It stays while a command runs, however often that reloads."""
    return secrets.token_urlsafe(12)


def environment(given: Mapping[str, str], secret: str, *, is_first: bool) -> dict[str, str]:
    """For a process of `fencerow dev`: the same address in each, and no second window of the browser."""
    more = {} if is_first else {f"{COMMAND_PREFIX}DEV_OPENED": "no"}
    return {**given, VARIABLE: secret, **more}


@contextlib.contextmanager
def shown(app: JobsApp, secret: str | None, *, wanted: bool, opened: bool) -> Iterator[str]:
    """The dashboard's address while the block lasts; empty where it is not wanted, or the extra `web` is missing."""
    if not wanted:
        yield ""
        return
    try:
        from fencerow.web.dashboard.local import LocalDashboard, open_browser
    except ImportError:
        yield ""
        return
    config = cast(Config, replace(app.config, url=app.config.url or DEFAULT_URL))
    with LocalDashboard(lambda: _made(config, app.jobs), port=PORT, secret=secret or new_secret()) as local:
        if opened:
            open_browser(local.url)
        yield local.url


def _made(config: Config, jobs: Mapping[str, Declared]) -> tuple[App, Dashboard]:
    """An app of its own, for the thread that serves; what is secret in `jobs` is known by their types."""
    from fencerow.app import App
    from fencerow.web.dashboard.asgi import Dashboard
    from fencerow.web.dashboard.roles import Role, Visitor

    visitor = Visitor(getpass.getuser(), Role.ADMIN)

    async def authorize(_request: object) -> Visitor:
        return visitor

    app = App(config=config)
    return app, Dashboard(app, authorize=authorize, read_only=False, jobs=jobs)
