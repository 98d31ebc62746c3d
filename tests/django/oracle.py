"""Plays Django's own tests of its task backends against ours: `python -m tests.django.oracle SOURCE --engine sqlite`.

SOURCE is Django's source, which has `tests/tasks`: the archive of a release has it, an installed Django has not. Its
tests name Django's two backends by their paths. Before they are loaded, ours are put there: one that only stores, and
one that also runs what it has stored, in the place of the immediate one. Left out are the tests that say what those
backends lack, and those that change what they have in memory.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import TestSuite

LEFT_OUT = {
    "ImmediateBackendTestCase.test_cannot_get_result": "ours can",
    "ImmediateBackendTestCase.test_cannot_refresh_result": "ours can",
    "ImmediateBackendTestCase.test_cannot_pass_run_after": "ours can",
    "ImmediateBackendTestCase.test_throws_keyboard_interrupt": "a worker's thread is no terminal",
    "ImmediateBackendTransactionTestCase.test_doesnt_wait_until_transaction_commit_by_default": (
        "ours waits for the commit, that is its point"
    ),
    "DummyBackendTestCase.test_refresh_result": "it changes a result in the memory of the backend",
    "DummyBackendTestCase.test_refresh_result_async": "it changes a result in the memory of the backend",
}


def main() -> int:
    """Play them, and say how many were played."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    told = parser.parse_args()
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # their async tests call sync verbs of the backends
    sys.path.insert(0, str(told.source / "tests"))
    with tempfile.TemporaryDirectory() as folder:
        if told.engine == "sqlite":
            return _played(_sqlite(Path(folder)))
        from fencerow.testing import PostgresServer

        with PostgresServer() as server:
            return _played(_postgres(server))


def _sqlite(folder: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": folder / "db.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
        "TEST": {"NAME": folder / "test.sqlite3"},
    }


def _postgres(server: Any) -> dict[str, Any]:
    from psycopg.conninfo import conninfo_to_dict

    known = conninfo_to_dict(server.conninfo("postgres", "postgres"))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": known["dbname"],
        "USER": known["user"],
        "HOST": known["host"],
        "PORT": known.get("port", ""),
    }


def _played(database: dict[str, Any]) -> int:
    import django
    from django.conf import settings

    settings.configure(
        SECRET_KEY="oracle",
        USE_TZ=True,
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "fencerow.django", "tasks"],
        DATABASES={"default": database},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        TASKS={"default": {"BACKEND": "fencerow.django.backend.FencerowBackend"}},
    )
    django.setup()
    _put_ours_in_place()
    from django.test import SimpleTestCase
    from django.test.runner import DiscoverRunner

    SimpleTestCase.databases = {"default"}
    runner = DiscoverRunner(verbosity=1, interactive=False)
    suite = TestSuite(_kept(runner.build_suite(["tasks"])))
    databases = runner.setup_databases(aliases={"default"})
    try:
        result = runner.run_suite(suite)
    finally:
        _end_what_async_tests_left()
        runner.teardown_databases(databases)
    sys.stdout.write(f"played {result.testsRun} of Django's tests, {len(LEFT_OUT)} left out\n")
    return 0 if result.wasSuccessful() and result.testsRun else 1


def _end_what_async_tests_left() -> None:
    """Where an async test calls a sync verb, Django opens a connection for that task, and nobody closes it."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = ''"
            )


def _kept(suite: Any) -> Iterator[Any]:
    for test in suite:
        if ".".join(test.id().split(".")[-2:]) not in LEFT_OUT:
            yield test


def _put_ours_in_place() -> None:
    from django.tasks.backends import dummy, immediate

    from fencerow.django import app
    from fencerow.django.backend import FencerowBackend
    from fencerow.errors import JobNotFound
    from fencerow.testing import drain

    class Storing(FencerowBackend):
        """Stores."""

        def __init__(self, alias: str, params: Any) -> None:
            super().__init__(alias, params)
            self._ids: list[str] = []

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            self._ids.append(result.id)
            return result

        @property
        def results(self) -> list[Any]:
            return [self.get_result(each) for each in self._ids]

        def clear(self) -> None:
            for each in self._ids:
                with suppress(JobNotFound):  # rolled back
                    app.client.cancel(each)
                    app.client.delete(each)
            self._ids.clear()

    class Running(FencerowBackend):
        """Stores, and runs it."""

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            # In a thread of its own, as a worker is: the loop of an async test knows nothing of it.
            with ThreadPoolExecutor(1) as worker:
                worker.submit(drain, app, queues=[task.queue_name]).result()
            result.refresh()
            return result

    dummy.DummyBackend = Storing
    immediate.ImmediateBackend = Running


if __name__ == "__main__":
    sys.exit(main())
