"""Verbs on names that need no declaration: a slip of the pen is done, and told with the closest name."""

from __future__ import annotations

import pytest

from fencerow.core.store import store
from fencerow.core.store.store import Failure, Success
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit import jobs
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

NOBODY = "no live job and no living worker knows the queue mial; did you mean mail?\n"


@pytest.mark.parametrize(
    "words",
    [
        ("queues", "pause", "mial"),
        ("queues", "resume", "mial"),
        ("shares", "set", "mial", "tenant-7", "--weight", "2"),
        ("limits", "set", "queue:mial", "--at-once", "1"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_queue_that_nobody_knows_is_told_with_the_closest_one(
    cli: Cli, url: str, engine: AnyEngine, words: tuple[str, ...]
) -> None:
    jobs.submit(engine, jobs.new_job(queue="mail"))
    right = tuple(each.replace("mial", "mail") for each in words)

    wrong, known = cli(*words), cli(*right)

    assert (wrong.code, wrong.err) == (0, NOBODY)
    assert (known.code, known.err) == (0, "")


def test_a_queue_that_a_worker_serves_is_known(cli: Cli, url: str, engine: AnyEngine) -> None:
    jobs.register(engine)

    assert cli("queues", "pause", "mail").err == ""
    assert (
        cli("queues", "pause", "far-away").err
        == "no live job and no living worker knows the queue far-away\n"
    )


def test_a_new_limit_is_told_with_the_one_that_it_resembles(cli: Cli, url: str) -> None:
    first, slip = (cli("limits", "set", name, "--rate", "20/s") for name in ("provider", "provdr"))

    assert (first.err, slip.err) == ("", "provdr is a new limit; did you mean provider?\n")
    assert cli("limits", "set", "provdr", "--rate", "9/s").err == "", "now it is known"


def test_the_backlog_of_a_limit_or_a_key_stands_in_a_narrow_list(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = jobs.register(engine)
    done, broken = (jobs.running(engine, holder) for _ in range(2))
    engine.run(store.succeed([Success(done.id, 1, "1")], holder=holder))
    engine.run(store.fail([Failure(broken.id, 1, '{"type":"E"}')], holder=holder))
    engine.run(store.cancel(*jobs.submit(engine), actor="ada"))
    jobs.submit(engine, *(jobs.new_job(exclusive="account-7") for _ in range(3)))
    cli("queues", "pause", "mail", "--reason", "the provider is away")
    monkeypatch.setenv("COLUMNS", "80")

    table = cli("queues").out
    (mail,) = (each for each in cli("queues", "--json").json if each["queue"] == "mail")

    head, row = table.splitlines()[0].split(), next(line for line in table.splitlines() if "mail" in line)
    assert "waiting" in head and "due" in head
    assert row.split()[head.index("waiting")] == "3", table
    assert mail["oldest_due_s"] is not None, "they are due, and wait for their turn"
