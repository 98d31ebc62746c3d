"""A user's mistake is told in three lines with a code and an exit code, and stores nothing."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from fencerow.cli import main
from fencerow.core.model.describe import describe
from fencerow.core.store import store
from fencerow.db.errors import exits
from fencerow.db.run import Steps, execute, operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from tests.cli.conftest import Cli, new_command
from tests.kit.servers import CopiedServer
from tools.public.errors import kinds

UNKNOWN = "0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e"


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["jobs", "list", "--url", "mysql://h/db"], 2, "FR-102"),
        (["jobs", "list", "--url", "postgresql://h/db?nonsense=1"], 2, "FR-102"),
        (["jobs", "list", "--url", "postgresql://u@127.0.0.1:1/db"], 3, "FR-502"),
        (["jobs", "list", "--url", "postgresql://u:hidden@h/db"], 2, "FR-201"),
        (["jobs", "list", "--url", "postgresql://h/db?password=hidden"], 2, "FR-201"),
        (["jobs", "list", "--url", "postgresql://h/db?p%61ssword=hidden"], 2, "FR-201"),
        (["jobs", "list", "postgresql://u:hidden@h/db"], 2, "FR-201"),
        (["jobs", "list", "--url", "sqlite:///not-there.db"], 4, "FR-510"),
        (["jobs", "list", "--url", "sqlite:///."], 3, "FR-502"),
        (["jobs", "list"], 2, "FR-105"),
        (["jobs", "list", "--limit", "0"], 2, "FR-201"),
        (["jobs", "list", "--state", "asleep"], 2, "FR-201"),
        (["jobs", "list", "--before", "x"], 2, "FR-201"),
        (["jobs", "list", "--meta", "customer"], 2, "FR-201"),
        (["jobs"], 2, "FR-105"),
        (["events"], 2, "FR-105"),
        (["shards"], 2, "FR-201"),
        (["events", "show", "first"], 2, "FR-201"),
        (["bench", "drain", "--quick", "--save", "no/such/folder/evidence.json"], 2, "FR-201"),
        (["jobs", "lst"], 2, "FR-201"),
        (["jobs", "--nonsense"], 2, "FR-201"),
        (["nonsense"], 2, "FR-201"),
        (["jobs", "cancel"], 2, "FR-201"),
        (["jobs", "cancel", UNKNOWN, "--queue", "mail"], 2, "FR-201"),
        (["jobs", "show", "no-id"], 2, "FR-201"),
        (["why", "no-id"], 2, "FR-201"),
        (["queues", "pause", "a\x1bb", "--url", "sqlite:///not-there.db"], 2, "FR-201"),
        (["worker"], 2, "FR-101"),
        (["worker", "-A", "not_there:app"], 2, "FR-101"),
        (["worker", "-A", ":"], 2, "FR-101"),
        (["worker", "-A", "shop:app", "-Q", "a:1,b"], 2, "FR-201"),
        (["worker", "-A", "shop:app", "-Q", "a:0"], 2, "FR-201"),
        (["worker", "-A", "shop:app", "-Q", ",a"], 2, "FR-201"),
        (["submit", "send", "to=x"], 2, "FR-101"),
        (["--schema", "No Such", "jobs", "list"], 2, "FR-101"),
        (["migrate", "--url", "sqlite:///no/such/folder/jobs.db"], 3, "FR-502"),
    ],
)
def test_a_mistake_is_three_lines_and_an_exit_code(
    cli: Cli, shop: str, tmp_path: Path, words: list[str], code: int, error: str
) -> None:
    result = cli(*words)

    assert (result.code, result.error) == (code, error)
    assert "hidden" not in result.err + result.out
    assert result.out == ""
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"shop.py"}


@pytest.mark.parametrize("group", ["history", "shards"])
def test_who_names_no_command_is_told_which_there_are(cli: Cli, group: str) -> None:
    result = cli(group)

    assert result.code == 2
    assert result.error == "FR-201"
    assert len(result.err) < 300 and "the commands are" in result.err, result.err


def test_an_unknown_setting_is_named_with_the_nearest(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_SLOT", "3")

    result = cli("jobs", "list")

    assert (result.code, result.error) == (2, "FR-101")
    assert "FENCEROW_SLOTS" in result.err


def test_an_unknown_twin_of_an_option_is_named_with_the_nearest(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_CLI_JOBS_LIST_LIMITS", "3")

    result = cli("version")

    assert (result.code, result.error) == (2, "FR-101")
    assert "did you mean FENCEROW_CLI_JOBS_LIST_LIMIT?" in result.err


def test_a_password_that_libpq_would_misread_is_not_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", "postgresql://u:hid@den/@127.0.0.1:1/db")

    result = cli("jobs", "list")

    assert result.code in (exits.REFUSED, exits.UNAVAILABLE)
    assert result.error in ("FR-102", "FR-502")
    assert "hid" not in result.err
    assert "den" not in result.err


def test_a_wrong_password_is_not_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with CopiedServer(fast=True, tcp=True) as server:
        url = server.conninfo(tcp=True).replace(server.password, "hidden")
        monkeypatch.setenv("FENCEROW_URL", url)

        result = cli("jobs", "list")

    assert (result.code, result.error) == (3, "FR-502")
    assert "hidden" not in result.err
    assert "password authentication failed" in result.err


def test_a_read_only_database_is_told(
    cli: Cli, server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres_url.split("@/")[1].split("?")[0]
    with server.connect() as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    monkeypatch.setenv("FENCEROW_URL", postgres_url)

    paused = cli("queues", "pause", "mail")
    seen = cli("queues", "list")

    assert (paused.code, paused.error) == (3, "FR-505")
    assert seen.code == 0, "looking needs no writing"


def test_missing_tables_are_told(cli: Cli, empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", empty_postgres_url)

    result = cli("jobs", "list")

    assert (result.code, result.error) == (4, "FR-510")
    assert "fencerow migrate" in result.err


@operation(writes="schema")
def applied(version: int) -> Steps[None]:
    """A step that only tomorrow's Fencerow knows."""
    yield from execute(
        "note_migration", version=version, name="newer", checksum="x", compatible_from=version, actor=None
    )


def test_a_newer_schema_is_told(cli: Cli, url: str, engine: SqliteEngine) -> None:
    newer = store.known_migrations(engine.dialect)[-1].version + 1
    engine.run(applied(newer))

    assert cli("jobs", "list").error == "FR-511"
    assert cli("jobs", "list").code == 4
    assert cli("migrate").error == "FR-511"
    assert cli("doctor").code == 1


def test_an_unknown_job_is_told(cli: Cli, url: str) -> None:
    for words in (
        ["jobs", "show", UNKNOWN],
        ["why", UNKNOWN],
        ["jobs", "cancel", UNKNOWN],
        ["jobs", "delete", UNKNOWN],
    ):
        result = cli(*words)

        assert (result.code, result.error) == (1, "FR-301")


def test_a_file_that_is_no_database_is_told_and_left(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "letter.db"
    file.write_text("Dear Ada, this is a letter and long enough to be looked at as a file.")

    result = cli("jobs", "list", "--url", "sqlite:///letter.db")

    assert (result.code, result.error) == (3, "FR-501")
    assert file.read_text().startswith("Dear Ada")


@pytest.mark.parametrize(
    "words", [["jobs", "list"], ["queues", "pause", "mail"], ["doctor"], ["migrate", "--plan"]]
)
def test_the_file_of_another_program_is_left_as_it_is(cli: Cli, tmp_path: Path, words: list[str]) -> None:
    """Opening it as ours would take it out of WAL mode and lay a file for workers beside it."""
    file = tmp_path / "browser.db"
    with closing(sqlite3.connect(file)) as theirs:
        theirs.execute("PRAGMA journal_mode = wal")
        theirs.execute("CREATE TABLE history (page)")
    before = file.read_bytes()

    result = cli(*words, "--url", "sqlite:///browser.db")

    assert "migrate" in result.out + result.err or words[0] == "migrate"
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["browser.db"]


def test_a_missing_extra_is_named_with_the_line_that_installs_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)

    result = cli("demo")

    assert (result.code, result.error) == (2, "FR-103")
    assert 'pip install "fencerow[demo]"' in result.err


def test_an_application_that_cannot_be_imported_is_told_with_its_place(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\nraise RuntimeError('no \\x1b[31m luck')\n")

    result = cli("worker", "-A", "broken:app", "--url", "sqlite:///x.db")

    assert (result.code, result.error) == (2, "FR-101")
    assert "broken.py:2" in result.err
    assert "\x1b" not in result.err


def test_a_check_finds_the_application_in_the_working_directory(cli: Cli, shop: str) -> None:
    """As every other command does; the path of the installed one begins where its script lies."""
    result = cli("check", "shop:sent")

    assert result.code == 2
    assert "its apps know fail, send, slow" in result.err


def test_an_application_under_another_name_is_suggested(cli: Cli, shop: str) -> None:
    result = cli("worker", "-A", "shop:application")

    assert (result.code, result.error) == (2, "FR-101")
    assert "did you mean -A shop:app?" in result.err


def test_an_unexpected_error_is_three_lines_and_a_traceback_only_when_asked(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise TypeError("no \x1b[31m way")

    monkeypatch.setattr("fencerow.cli.jobs.working", broken)

    plain, debugged = cli("jobs", "list"), cli("jobs", "list", "--debug")

    assert (plain.code, plain.error) == (exits.UNEXPECTED, "FR-000")
    assert "Traceback" in debugged.err
    assert "\x1b" not in plain.err + debugged.err


def test_an_interrupt_ends_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fencerow.cli.jobs.working", interrupted)

    assert cli("jobs", "list").code == exits.INTERRUPTED


def test_a_reader_that_leaves_is_no_error() -> None:
    """`head` reads a line and goes: nothing is said, least of all by the interpreter at exit."""
    with new_command("sql") as process:
        assert process.stdout and process.stderr
        process.stdout.close()

        assert process.wait(30) == exits.BROKEN_PIPE
        assert process.stderr.read() == ""


@pytest.mark.parametrize("service", ["FENCEROW", "FENCEROW_CLI"])
def test_what_kubernetes_makes_for_a_service_of_our_name_stops_no_command(
    service: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(f"{service}_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv(f"{service}_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv(f"{service}_PORT_80_TCP_ADDR", "10.0.0.1")

    for words in (["jobs", "list"], ["queues"], ["workers"], ["doctor"], ["sql"]):
        found = cli(*words)
        assert (found.code, found.err) == (0, ""), words


def test_every_error_of_ours_has_an_exit_code() -> None:
    from fencerow import errors

    assert len(kinds()) > 80

    for kind in kinds():
        made = kind("what", error=describe(ValueError())) if kind is errors.JobFailed else kind("what")
        assert made.exit_code in range(1, 7)
    assert main.run(["--help"]) == 0
