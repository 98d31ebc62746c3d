"""What `manage.py check` says of Fencerow: settings that cannot work, and tables that do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from django.core import checks
from django.db import connections

from fencerow.app import App
from fencerow.django.database import url_of
from fencerow.django.following import DjangoApp
from fencerow.django.project import project_app
from fencerow.django.settings import read_settings
from fencerow.django.tables import alias_of_jobs
from fencerow.errors import FencerowError, SchemaMissing, SchemaTooOld


def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Whether the settings name a database and an app that can work. Nothing is opened."""
    try:
        told = read_settings()
        app = project_app()
        alias = alias_of_jobs()
        url = url_of(alias)
    except FencerowError as error:
        return [_of(error, "E001")]
    found = [*_other_database(app, url), *_late_write_lock(alias)]
    if told.dashboard is not None and find_spec("starlette") is None:
        found.append(
            checks.Error(
                "FENCEROW['DASHBOARD'] is set, and what serves the dashboard is not installed.",
                hint='pip install "fencerow[web]"',
                id="fencerow.E004",
            )
        )
    return found


def check_tables(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Whether the tables are those that this Fencerow needs: `manage.py check --database default`."""
    try:
        if alias_of_jobs() not in (databases or ()):
            return []
        app = project_app()
        app.check()
    except (SchemaMissing, SchemaTooOld) as error:
        # No error: `manage.py migrate` itself runs this check first, and would stop at it.
        return [
            checks.Warning(
                f"{error.what}: {error.why}.", hint="`manage.py migrate` does it.", id="fencerow.W005"
            )
        ]
    except FencerowError as error:
        return [_of(error, "E006")]
    return []


def _other_database(app: App, url: str) -> Iterator[checks.CheckMessage]:
    if not isinstance(app, DjangoApp) and app.config.url != url:
        yield checks.Error(
            "FENCEROW['APP'] is on another database than FENCEROW['DATABASE'].",
            hint="Make it a fencerow.django.DjangoApp(): else no submit can be part of an atomic() block.",
            id="fencerow.E002",
        )


def _late_write_lock(alias: str) -> Iterator[checks.CheckMessage]:
    wrapper = connections[alias]
    options = wrapper.settings_dict.get("OPTIONS", {})
    if wrapper.vendor == "sqlite" and str(options.get("transaction_mode", "")).upper() not in (
        "IMMEDIATE",
        "EXCLUSIVE",
    ):
        yield checks.Warning(
            f"On the SQLite database {alias!r} an atomic() block that reads before it enqueues fails if a worker has "
            "written meanwhile.",
            hint=f'DATABASES[{alias!r}]["OPTIONS"] = {{"transaction_mode": "IMMEDIATE"}}',
            id="fencerow.W003",
        )


def _of(error: FencerowError, number: str) -> checks.CheckMessage:
    return checks.Error(
        f"{error.what}: {error.why}.", hint=f"{error.fix} ({error.code})", id=f"fencerow.{number}"
    )
