"""`fencerow metrics`: once on the standard output, or on a port."""

from __future__ import annotations

import signal
import sys

import pytest

from fencerow.testing.ports import free_port
from tests.cli.conftest import Cli, command
from tests.kit.jobs import AnyEngine, new_job, submit
from tests.kit.pace import PATIENCE_S
from tests.metrics.test_page import samples
from tests.metrics.test_port import scraped


def test_it_prints_what_the_database_looks_like(engine: AnyEngine, url: str, cli: Cli) -> None:
    submit(engine, new_job(), new_job())

    found = samples(cli("metrics").out.encode())

    assert found["fencerow_jobs", "mail", "due"] == 2


def test_it_serves_them_until_it_is_told_to_end(lite: AnyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")  # type: ignore[union-attr]
    port = free_port()
    process = command("metrics", "--bind", str(port))
    try:
        found = samples(scraped(port))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()

    assert found[("fencerow_database_look_up",)] == 1


def test_without_the_library_it_says_what_to_install(
    url: str,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    assert cli("metrics").error == "FR-103"
