"""A database that cannot be used is one error, whoever comes to it: what was found, expected, what to do, its code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencerow import App
from fencerow.cli import main
from fencerow.errors import FencerowError, Unavailable
from fencerow.testing.postgres import PostgresServer
from tests.cli.conftest import Cli, command
from tests.conftest import ROLE
from tests.kit.command import Command

NOBODY = 65534
Fixture = Callable[[str], object]


def wrong_password(fixture: Fixture, _folder: Path) -> str:
    server = fixture("tcp_server")
    assert isinstance(server, PostgresServer)
    return server.conninfo("app", ROLE, tcp=True).replace(server.password, "hidden")


def not_there(_fixture: Fixture, _folder: Path) -> str:
    return "postgresql://app@127.0.0.1:1/app"


def without_the_schema(fixture: Fixture, _folder: Path) -> str:
    return str(fixture("empty_postgres_url"))


def a_folder(_fixture: Fixture, folder: Path) -> str:
    (folder / "jobs").mkdir()
    return f"sqlite:///{folder}/jobs"


def no_database(_fixture: Fixture, folder: Path) -> str:
    (folder / "jobs.db").write_text("Dear diary, " * 1_000)
    return f"sqlite:///{folder}/jobs.db"


DOORS = (
    (wrong_password, "FR-502", "password authentication failed"),
    (not_there, "FR-502", "Connection refused"),
    (without_the_schema, "FR-510", "run `fencerow migrate`"),
    (a_folder, "FR-502", "is a folder"),
    (no_database, "FR-501", "file is not a database"),
)


def by_list(cli: Cli) -> list[str]:
    return refused(cli, "jobs", "list")


def by_worker(cli: Cli) -> list[str]:
    return refused(cli, "worker", "-A", "shop:app")


def refused(cli: Cli, *words: str) -> list[str]:
    result = cli(*words)
    assert (bool(result.error), result.out) == (True, "")
    assert result.code in (3, 4)
    return result.err.splitlines()


def by_submit(_cli: Cli) -> list[str]:
    with App(os.environ["FENCEROW_URL"]) as app:

        @app.job
        def send(to: str) -> None: ...

        with pytest.raises(FencerowError) as told:
            send.submit("ada")
    return list(told.value.lines())


@pytest.mark.parametrize("come", [by_list, by_worker, by_submit])
@pytest.mark.parametrize(("door", "code", "said"), DOORS)
def test_a_database_that_cannot_be_used_is_one_error_for_whoever_comes(
    request: pytest.FixtureRequest,
    cli: Cli,
    shop: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    door: Callable[[Fixture, Path], str],
    code: str,
    said: str,
    come: Callable[[Cli], list[str]],
) -> None:
    monkeypatch.setenv("FENCEROW_URL", door(request.getfixturevalue, tmp_path))
    monkeypatch.setenv("FENCEROW_CONNECT_TIMEOUT_S", "1")
    monkeypatch.setenv("FENCEROW_START_PATIENCE_S", "300" if door is wrong_password else "0")

    with caplog.at_level(logging.INFO):
        lines = come(cli)

    assert lines[0].startswith(f"{code}: ")
    assert said in "\n".join(lines)
    assert "hidden" not in "\n".join(lines)
    assert [each.getMessage() for each in caplog.records] == []


def test_a_file_that_may_not_be_written_is_one_error(
    cli: Cli, shop: str, migrated_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write any file, so children of ours without rights come to it; what they import is there already."""
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{migrated_path}")
    assert cli("submit", "-A", shop, "send", "to=ada").code == 0
    assert cli("worker", "-A", shop, "--once").code == 0
    for path in migrated_path.parent.iterdir():
        path.chmod(0o444)
    migrated_path.parent.chmod(0o555)

    told = [without_rights("worker", "-A", shop), without_rights("submit", "-A", shop, "send", "to=ada")]

    migrated_path.parent.chmod(0o755)
    for lines in told:
        assert (lines[0].partition(": ")[0], len(lines)) == ("FR-505", 3), lines
        assert "is read-only" in lines[0]


def test_a_journal_that_may_not_be_written_is_told_by_its_name(
    cli: Cli, shop: str, migrated_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{migrated_path}")
    monkeypatch.setenv("FENCEROW_JOURNAL_MODE", "truncate")
    assert cli("worker", "-A", shop, "--once").code == 0
    migrated_path.parent.chmod(0o777)
    for path in migrated_path.parent.iterdir():
        path.chmod(0o666)
    (journal := Path(f"{migrated_path}-workers-journal")).touch()
    journal.chmod(0o444)

    lines = without_rights("worker", "-A", shop, "--once")

    assert lines[0] == f"FR-505: {journal} is read-only"


def without_rights(*words: str) -> list[str]:
    """What the command tells a user who may read everything, and write nothing."""
    told, tell = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(NOBODY)
            sys.stdout = sys.stderr = os.fdopen(tell, "w")
            main.run(list(words))
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told) as lines:
        heard = lines.read().splitlines()
    os.waitpid(pid, 0)
    return heard


def test_a_server_that_stops_meanwhile_is_one_error_and_no_traceback(
    cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresServer(fast=True, tcp=True) as server:
        server.create_role_and_schema(role=ROLE, database="app")
        monkeypatch.setenv("FENCEROW_URL", server.conninfo("app", ROLE, tcp=True))
        monkeypatch.setenv("FENCEROW_CONNECT_TIMEOUT_S", "1")
        assert cli("migrate").code == 0
        with App(os.environ["FENCEROW_URL"]) as app, worker_of(shop) as worker:

            @app.job(queue="mail")
            def send(to: str) -> None: ...

            send.submit("ada")
            log = until(worker, "succeeded after")
            server.stop()
            with pytest.raises(Unavailable):
                send.submit("bob")
            assert refused(cli, "jobs", "list")[0].startswith("FR-502: ")
            log += until(worker, "met trouble")
            server.start()
            send.submit("eve")
            log += until(worker, "succeeded after")

    assert "Traceback" not in log and "psycopg" not in log, log
    # What the server says while it goes down and comes up is its own: each loop may hear another line of it, and one
    # whose commit was under way cannot know what became of it (FR-503).
    troubles = [line for line in log.splitlines() if "met trouble" in line]
    assert troubles and all("FR-502" in line or "FR-503" in line for line in troubles), troubles


@contextmanager
def worker_of(shop: str) -> Iterator[Command]:
    process = command("worker", "-A", shop)
    with process:
        try:
            yield process
        finally:
            process.kill()


def until(process: Command, said: str) -> str:
    """The lines of its log, up to the first with these words."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if said in line:
            return "".join(lines)
    raise AssertionError("".join(lines))
