"""What a worker looks at when it starts: told in its first entry, and never waited for beyond a bound."""

from __future__ import annotations

import logging
import threading

import pytest

from fencerow import App
from fencerow.cli import banner
from fencerow.core.errors import SchemaTampered
from fencerow.core.finding import Finding, warn
from fencerow.doctor import schema, self_test_sqlite
from fencerow.doctor.self_test import self_test
from tests.cli import conftest as command_line
from tests.kit.pace import PATIENCE_S

url = command_line.url  # a fixture


def made(url: str) -> App:
    app = App(url)
    app.check_or_create()
    return app


def test_all_is_looked_at_and_told_in_the_first_entry(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with made(url) as app, caplog.at_level(logging.INFO, "fencerow.worker"):
        app.job(name="mail")(mail)
        banner.show(app, app.worker())
        tested = self_test(app.engine, app.config, within_s=PATIENCE_S)

    names = [each.name for each in tested.findings]
    on_server = ["schema", "clock", "pooler", "listen"]
    assert names == (on_server if url.startswith("postgres") else ["schema", "room", "write-ahead log"])
    (entry,) = [each for each in caplog.records if each.getMessage().startswith("fencerow ")]
    assert f"\nchecked     {', '.join(names)}" in entry.getMessage()
    assert vars(entry)["checked"]["schema"].startswith("migration ")


def test_what_is_wrong_is_a_warning_with_what_to_do(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_engine: object) -> list[Finding]:
        raise SchemaTampered("the file of migration 3 was changed", "it was released", "restore it")

    monkeypatch.setattr(schema, "examine_schema", broken)
    monkeypatch.setattr(self_test_sqlite, "room", lambda _path: warn("room", "1 MiB free", "make room"))
    with made(url) as app, caplog.at_level(logging.WARNING, "fencerow.worker"):
        app.job(name="mail")(mail)
        banner.show(app, app.worker())

    assert "checked at the start: schema: FR-" in caplog.text and "restore it" in caplog.text
    assert ("room: 1 MiB free; make room" in caplog.text) is url.startswith("sqlite")


def test_a_check_that_does_not_answer_is_told_and_not_waited_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def hanging(_engine: object) -> list[Finding]:
        over.wait(PATIENCE_S)
        return []

    monkeypatch.setattr(schema, "examine_schema", hanging)
    with made(url) as app:
        tested = self_test(app.engine, app.config, within_s=0.1)
        over.set()

    assert tested.findings[0].found == "no answer within 0.1 s; the worker starts all the same"


async def mail() -> None: ...
