"""What a shell completes behind a command: names that workers serve. The tab key must never hang or fail.

The names come from the registrations of workers, a small table however many jobs there are; those of a wing from a look
that is as bounded. No application is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import click

from fencerow.command.database import opened, parsed_path
from fencerow.command.options import asked
from fencerow.core.config import CoreConfig
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.core.store.connect import DEFAULT_URL
from fencerow.db.engine import Engine
from fencerow.db.url import SqliteUrl, parse_url

PATIENCE_S = 1.0  # to reach the server
WORKERS_MAX = 100

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def queue_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Queues that workers serve or served lately."""
    return completed(
        context, incomplete, lambda engine: (name for each in _workers(engine) for name in each.queues or ())
    )


def job_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Jobs that workers know or knew lately."""
    return completed(
        context, incomplete, lambda engine: (name for each in _workers(engine) for name in each.names or ())
    )


def completed(context: click.Context, incomplete: str, names: Callable[[Engine], Iterable[str]]) -> list[str]:
    """Those of the names that the database tells which begin so; none if it does not answer."""
    try:
        config = _config(context)
        if config is None:
            return []
        with opened(replace(config, connect_timeout_s=PATIENCE_S)) as engine:
            found = set(names(engine))
    except Exception:  # whatever is wrong, the command itself says it when it runs
        return []
    # A name that is no plain text is no word of a command line, and could move the cursor.
    return sorted(name for name in found if name.startswith(incomplete) and name.isprintable())


def _workers(engine: Engine) -> list[WorkerRecord]:
    return engine.run(store.list_workers(limit=WORKERS_MAX))


def _config(context: click.Context) -> CoreConfig | None:
    """The settings, if they name a database that is there. A file is never made."""
    config = asked(context).config()
    config = config if config.url else replace(config, url=DEFAULT_URL)
    url = parse_url(config.url or DEFAULT_URL)
    return None if isinstance(url, SqliteUrl) and not Path(parsed_path(config.url or "")).exists() else config
