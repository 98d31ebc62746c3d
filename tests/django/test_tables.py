"""`manage.py migrate` makes our tables and keeps them current; `manage.py check` says what is wrong."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import override_settings

from fencerow.core.schema.rooms import known_migrations
from fencerow.django import checking, tables
from fencerow.django.following import DjangoApp
from fencerow.django.project import project_app
from fencerow.errors import InvalidDjangoSettings, UnusableDjangoDatabase
from tests.django.conftest import made_anew, named


@pytest.fixture
def empty_alias(sqlite_path: Path) -> Iterator[str]:
    yield from named("default", f"sqlite:///{sqlite_path}")


def ids(found: list[Any]) -> list[str]:
    return [each.id for each in found]


def test_migrate_makes_them_and_the_check_says_so(empty_alias: str) -> None:
    assert ids(checking.check_tables(databases=["default"])) == ["fencerow.W005"]
    call_command("migrate", "fencerow", verbosity=0)

    assert checking.check_tables(databases=["default"]) == []
    assert checking.check_tables(databases=["postgres"]) == []  # it is not asked about ours


def test_a_newer_fencerow_brings_what_is_missing_at_the_next_migrate(empty_alias: str) -> None:
    app = project_app()
    newest = known_migrations("sqlite")[-1].version
    from fencerow.core.store import store

    store.migrate(app.engine, to=newest - 1)
    assert ids(checking.check_tables(databases=["default"])) == ["fencerow.W005"]
    told = io.StringIO()
    tables.after_migrate(using="postgres", stdout=told)
    assert told.getvalue() == ""
    tables.after_migrate(using="default", stdout=told)

    assert told.getvalue().startswith(f"  Fencerow's tables: schema_{newest:04}")
    assert checking.check_tables(databases=["default"]) == []


def test_tables_that_are_newer_are_left_alone_and_told(sqlite_alias: str, app: DjangoApp) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "UPDATE fencerow_schema_migrations SET version = 9000, compatible_from = 9000 "
            "WHERE version = (SELECT max(version) FROM fencerow_schema_migrations)"
        )
    with pytest.raises(CommandError, match="FR-511"):
        tables.bring_up("default")

    assert ids(checking.check_tables(databases=["default"])) == ["fencerow.E006"]


def test_the_models_need_no_migration(empty_alias: str) -> None:
    call_command("makemigrations", "fencerow", "--check", "--dry-run", verbosity=0)


def test_right_settings_have_nothing_to_tell(sqlite_alias: str) -> None:
    assert checking.check_settings() == []


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ({"DATABSE": "default"}, "E001"),
        ({"DATABASE": "nowhere"}, "E001"),
        ({"MODULES": "tasks"}, "E001"),
        ({"APP": "shop.nowhere.app"}, "E001"),
        ({"APP": "tests.django.urls.urlpatterns"}, "E001"),
        ({"CONFIG": {"slotz": 3}}, "E001"),
        ("default", "E001"),
    ],
)
def test_wrong_settings_are_told(sqlite_alias: str, told: Any, number: str) -> None:
    with override_settings(FENCEROW=told), made_anew():
        assert ids(checking.check_settings()) == [f"fencerow.{number}"]


def test_a_block_that_takes_the_write_lock_late_is_warned_of(sqlite_alias: str) -> None:
    options = connections["default"].settings_dict.pop("OPTIONS")
    try:
        assert ids(checking.check_settings()) == ["fencerow.W003"]
    finally:
        connections["default"].settings_dict["OPTIONS"] = options


def test_a_database_in_memory_is_refused_when_it_is_used(sqlite_alias: str) -> None:
    connections["default"].settings_dict["NAME"] = "file:memorydb_default?mode=memory&cache=shared"
    with made_anew():
        app = DjangoApp()
        with pytest.raises(UnusableDjangoDatabase, match="in memory"):
            _ = app.engine


def test_the_app_follows_the_database_that_tests_give(sqlite_alias: str, tmp_path: Path) -> None:
    app = DjangoApp()
    before = app.config.url
    app.check()
    connections["default"].settings_dict["NAME"] = str(tmp_path / "test.sqlite3")
    app.migrate()
    app.close()

    assert (tmp_path / "test.sqlite3").exists()
    assert app.config.url != before


def test_config_wins_over_the_environment_but_not_over_djangos_database(
    sqlite_alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", "sqlite:///elsewhere.db")
    monkeypatch.setenv("FENCEROW_SLOTS", "3")
    with override_settings(FENCEROW={"CONFIG": {"slots": 7}}):
        app = DjangoApp()

    assert app.config.slots == 7
    assert app.config.url is not None and "elsewhere" not in app.config.url


def test_an_unknown_key_names_the_closest() -> None:
    from fencerow.django.settings import read_settings

    with (
        override_settings(FENCEROW={"DATABSE": "x"}),
        pytest.raises(InvalidDjangoSettings, match="'DATABASE'"),
    ):
        read_settings()
