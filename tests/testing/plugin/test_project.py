"""The project of the documentation passes on both engines, and other projects with it in their own ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.plugin.conftest import OTHERS, Run

pytestmark = pytest.mark.prove

BOTH = """
import pytest

@pytest.fixture(params=["postgres", "sqlite"])
def fencerow_engine(request):
    return request.param

@pytest.fixture(scope="session")
def fencerow_prepare():
    def make(url):
        if url.startswith("sqlite"):
            import sqlite3
            connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        else:
            import psycopg
            connection = psycopg.connect(url)
        connection.execute("CREATE TABLE mine (id integer PRIMARY KEY)")
        connection.commit()
        connection.close()
    return make
"""
TABLES = """
def test_one(fencerow_app, fencerow_database):
    assert fencerow_database.execute("SELECT count(*) FROM mine") == [(0,)]
    fencerow_database.execute("INSERT INTO mine VALUES (1)")
    assert fencerow_app.config.url.startswith(fencerow_database.url.partition(":")[0])

def test_another_has_a_database_of_its_own(fencerow_database, fencerow_sqlite):
    assert fencerow_database.execute("SELECT count(*) FROM mine") == [(0,)]
    assert fencerow_sqlite.kind == "sqlite" and fencerow_sqlite.url != fencerow_database.url
"""
ASYNC = """
import pytest
from fencerow import App
from fencerow.testing import adrain, assert_submitted, drain
from fencerow.errors import InvalidInput
import shop

async def test_async(fencerow_app, fencerow_clock):
    await shop.order.asubmit("ann@example.org", items=1)
    ran = await adrain(fencerow_app, check=True)
    assert [each.name for each in ran] == ["order", "send_mail"]
    fencerow_clock.advance(days=1)
    assert await adrain(fencerow_app) == []

async def test_drain_says_what_to_write_instead(fencerow_app):
    with pytest.raises(InvalidInput, match="await adrain"):
        drain(fencerow_app)
"""


ASYNCIO = 'asyncio_mode = "auto"\nasyncio_default_fixture_loop_scope = "function"\n'
PLAIN = """
import asyncio
import shop
from fencerow.testing import adrain

def test_it(fencerow_app):
    async def main():
        await shop.order.asubmit("ann@example.org", items=1)
        return await adrain(fencerow_app)

    assert len(asyncio.run(main())) == 2
"""


def test_on_both_engines_by_several_processes_with_async_tests_and_tables_of_ones_own(
    project: Path, run: Run
) -> None:
    """The project of the documentation is among them; every warning is an error."""
    with (project / "pyproject.toml").open("a") as file:
        file.write(ASYNCIO)
    (project / "conftest.py").write_text(BOTH)
    (project / "test_tables.py").write_text(TABLES)
    (project / "test_async.py").write_text(ASYNC)

    done = run(
        project, "-q", "-n", "2", without=[name for name in OTHERS if name not in ("xdist", "asyncio")]
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 passed" in done.stdout


def test_in_one_loop_for_the_session(project: Path, run: Run) -> None:
    """The loop does not run when a fixture ends, so nothing in it closes what a test opened; nobody may complain."""
    with (project / "pyproject.toml").open("a") as file:
        file.write(ASYNCIO.replace("function", "session") + 'asyncio_default_test_loop_scope = "session"\n')
    (project / "test_async.py").write_text(
        ASYNC + ASYNC[ASYNC.index("async def") :].replace("def test", "def test_again")
    )

    done = run(
        project,
        "-q",
        "test_async.py",
        "--fencerow-engine=postgres",
        without=[name for name in OTHERS if name != "asyncio"],
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_without_any_plugin_for_async_tests_and_with_the_engine_of_the_command_line(
    project: Path, run: Run
) -> None:
    (project / "test_plain.py").write_text(PLAIN)

    done = run(project, "-q", "--fencerow-engine=sqlite")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_unused_it_imports_nothing_of_the_package(project: Path, run: Run) -> None:
    (project / "test_other.py").write_text(
        "import sys\n\ndef test_it():\n    assert 'pytest_fencerow' in sys.modules\n"
        "    assert [name for name in sys.modules if name.partition('.')[0] in ('fencerow', 'psycopg')] == []\n"
    )

    done = run(project, "-q", "test_other.py")

    assert done.returncode == 0, done.stdout + done.stderr
