"""Options of other systems' commands, and a file where a module is named, are answered with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("--concurrency", "--slots"),
        ("--workers", "--processes"),
        ("--loglevel", "--log-level"),
        ("--burst", "--once"),
    ],
)
def test_an_option_of_another_system(given: str, ours: str, cli: Cli) -> None:
    refused = cli("worker", given, "3")

    assert refused.error == "FR-201" and f"write {ours}" in refused.err


@pytest.mark.parametrize("given", ["--slots", "--concurrency"])
def test_how_many_of_a_limit_and_of_a_worker_are_two_words(given: str, cli: Cli) -> None:
    of_limits, of_workers = cli("limits", "set", "github", given, "3"), cli("worker", "--at-once", "3")

    assert "write --at-once" in of_limits.err and "write --slots" in of_workers.err
    assert ("another system" in of_limits.err) == (given == "--concurrency"), "our own words are no others'"
    assert "another system" not in of_workers.err


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (("purge",), "jobs cancel --only-queued --queue NAME"),
        (("queues", "purge"), "jobs cancel --only-queued --queue NAME"),
        (("jobs", "retry"), "jobs revive"),
        (("beat",), "worker"),
        (("list",), "jobs list"),
    ],
)
def test_a_command_of_another_system(given: tuple[str, ...], ours: str, cli: Cli) -> None:
    refused = cli(*given)

    assert refused.error == "FR-201" and f"`fencerow {ours}`" in refused.err


def test_an_option_of_nobody_is_answered_as_before(cli: Cli) -> None:
    assert "usage: " in cli("worker", "--slotz", "3").err


def test_a_file_is_no_module(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert "write -A digest.service:app" in cli("worker", "-A", "digest/service.py:app").err
