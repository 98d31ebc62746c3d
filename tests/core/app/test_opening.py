from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Config
from fencerow.app import LocalDatabaseWarning
from fencerow.errors import ConfigError, SchemaMissing, SchemaTooOld, Unavailable, UrlError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FENCEROW_URL", raising=False)
    return tmp_path


def one_job(app: App) -> Any:
    @app.job
    def work(n: int = 0) -> int:
        return n

    return work


def test_without_a_url_jobs_go_to_a_file_here_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = App()
    work = one_job(app)
    assert list(folder.iterdir()) == []

    with pytest.warns(LocalDatabaseWarning, match=str(folder / "fencerow.db")):
        work.submit()

    assert (folder / "fencerow.db").exists()
    assert caplog.text == "", "it is told once"
    assert issubclass(LocalDatabaseWarning, UserWarning)
    app.close()


def test_a_file_that_was_named_needs_no_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with App("sqlite:///mine.db") as app:
            one_job(app).submit()

    assert (folder / "mine.db").exists()
    assert caplog.text == ""


def test_the_environment_names_the_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", "sqlite:///from-environment.db")

    for app in (App(), App(config=Config())):
        with app:
            one_job(app).submit()

    assert (folder / "from-environment.db").exists()
    with App("sqlite:///argument.db") as app:
        one_job(app).submit()
    assert (folder / "argument.db").exists()


def test_a_relative_path_means_the_same_after_a_chdir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("sqlite:///a%20b%23.db")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")

    with app:
        one_job(app).submit()

    assert (folder / "a b#.db").exists()


@pytest.mark.parametrize("url", ["mysql://x", "sqlite://", "postgresql:x", "", "fencerow.db"])
def test_a_url_that_cannot_be_used_is_refused_by_the_constructor(folder: Path, url: str) -> None:
    with pytest.raises(UrlError):
        App(url)


def test_a_password_never_shows_in_an_error(folder: Path) -> None:
    with pytest.raises(UrlError) as raised:
        App("mysql://ada:hunter2@host/db")

    assert "hunter2" not in str(raised.value)


def test_unknown_settings_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_LEASE_SECONDS", "5")

    with pytest.raises(ConfigError, match="FENCEROW_LEASE_SECONDS"):
        App("sqlite:///a.db")


@pytest.mark.parametrize("options", [{"schema": "Jobs; DROP"}, {"table_prefix": "a-b"}, {"actor": "a\nb"}])
def test_names_that_would_become_sql_are_checked(folder: Path, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        App("sqlite:///a.db", **options)  # type: ignore[arg-type]


def test_several_apps_share_one_file_under_their_prefixes(sqlite_path: Path) -> None:
    with (
        App(f"sqlite:///{sqlite_path}", table_prefix="a_") as a,
        App(f"sqlite:///{sqlite_path}", table_prefix="b_") as b,
    ):
        one_job(a).submit()

        assert (len(a.client.list_jobs()), len(b.client.list_jobs())) == (1, 0)


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/nowhere/a.db")

    with pytest.raises(Unavailable, match="nowhere"):
        one_job(app).submit()
    app.close()


def test_postgres_is_never_migrated_by_itself(empty_postgres_url: str) -> None:
    with App(empty_postgres_url) as app:
        work = one_job(app)

        with pytest.raises((SchemaMissing, SchemaTooOld), match="fencerow migrate"):
            work.submit()
        assert app.migrate()
        assert app.migrate() == []
        app.check()
        work.submit()


def test_the_schema_is_looked_at_once(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    app = App(f"sqlite:///{sqlite_path}")
    real = app.check_or_create

    def look() -> None:
        looks.append(1)
        real()

    monkeypatch.setattr(app, "check_or_create", look)
    work = one_job(app)

    for _ in range(3):
        work.submit()

    assert looks == [1]
    app.close()


def test_many_threads_may_use_a_fresh_file_at_once(sqlite_path: Path) -> None:
    app = App(f"sqlite:///{sqlite_path}")
    work = one_job(app)
    threads = [threading.Thread(target=work.submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(app.client.list_jobs()) == 8
    app.close()


def test_a_closed_app_opens_again_at_the_next_use(url: str) -> None:
    app = App(url)
    work = one_job(app)
    first = work.submit()
    app.close()

    assert app.client.get(first.id).name == "work"
    app.close()
    app.close()


def test_an_app_serves_one_event_loop_after_another(url: str) -> None:
    app = App(url)
    work = one_job(app)

    async def once() -> None:
        async with app:
            await work.asubmit()

    asyncio.run(once())
    asyncio.run(once())

    with app:
        assert len(app.client.list_jobs()) == 2
