"""doctor says which keys of `once` and of windows nobody removes."""

from __future__ import annotations

import pytest

import fencerow.guards.once.checks as checks
from fencerow import Database
from fencerow.guards.once import DedupeWindow, once
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.doctor.test_doctor import finding, levels

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures


def test_keys_that_nobody_removes_are_seen(cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(url) as database:
        once(database, "k", lifetime_s=60).call(lambda: 1)
        DedupeWindow(database, "w", 5).admit("k", "v")
    assert "leftovers" not in levels(cli("doctor", "--json"))
    monkeypatch.setattr(checks, "LEFT_S", -3600.0)

    assert "2 keys of once" in finding(cli("doctor", "--json"), "leftovers")["found"]
