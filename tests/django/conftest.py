"""A Django project on a new database of each engine, and its app."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections
from django.test import override_settings

import tests.django.project as project
from fencerow.django.following import DjangoApp
from fencerow.django.project import project_app

ALIASES = {"sqlite": "default", "postgres": "postgres"}


@pytest.fixture(params=["sqlite", "postgres"])
def alias(request: pytest.FixtureRequest) -> Iterator[str]:
    """The entry of DATABASES that has the jobs: each engine in turn, a migrated database."""
    if request.param == "sqlite":
        url = f"sqlite:///{request.getfixturevalue('migrated_path')}"
    else:
        url = request.getfixturevalue("postgres_url")
    yield from named(ALIASES[request.param], url)


@pytest.fixture
def sqlite_alias(request: pytest.FixtureRequest) -> Iterator[str]:
    """The same on SQLite alone: for what has no SQL of its own."""
    yield from named("default", f"sqlite:///{request.getfixturevalue('migrated_path')}")


@pytest.fixture
def app(request: pytest.FixtureRequest) -> DjangoApp:
    """The project's app."""
    request.getfixturevalue("alias" if "alias" in request.fixturenames else "sqlite_alias")
    found = project_app()
    assert isinstance(found, DjangoApp)
    return found


def named(alias: str, url: str) -> Iterator[str]:
    """Give an entry of DATABASES the database of a test, as Django's own test runner does it."""
    told = connections[alias].settings_dict
    before = dict(told)
    told.update(project.settings_of(url))
    with override_settings(FENCEROW={"DATABASE": alias}), made_anew():
        yield alias
        connections[alias].close()
        # What async code asks of Django runs in a thread that outlives the test, with connections of its own.
        SyncToAsync.single_thread_executor.submit(connections.close_all).result()
    told.clear()
    told.update(before)


class made_anew:  # noqa: N801 (it stands in a with)
    """The project's app is made by its settings at the first use; another test has others."""

    def __enter__(self) -> None:
        import fencerow.django.project as made

        self._before = made._made
        made._made = None

    def __exit__(self, *_: object) -> None:
        import fencerow.django.project as made

        if made._made is not None:
            made._made.close()
        made._made = self._before
