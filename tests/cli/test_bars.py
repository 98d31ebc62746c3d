"""Progress bars: on a terminal only, beside the output and never in it."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import click
import pytest

from fencerow.cli.following import following
from fencerow.client import Client
from fencerow.command.progress import progress, shows
from fencerow.core.client.handle import Handle
from fencerow.core.store import store
from fencerow.db.errors import exits
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import SHOP, url_of
from tests.kit.jobs import AnyEngine, running
from tests.kit.pace import PATIENCE_S
from tests.kit.terminal import Terminal as Shell
from tests.kit.terminal import terminal


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A standard error that is a terminal, where nothing forbids a bar. No fixture: pytest sets its own after those."""
    made = Terminal()
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_a_bar_shows_how_many_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    with progress("cancel", 1000, json=False) as bar:
        bar.to(500)
        bar.to(1000)

    assert "500/1000" in terminal.getvalue()
    assert "cancel  [" in terminal.getvalue()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_plain_lines_gets_no_bar(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    terminal = on_a_terminal(monkeypatch)
    assert shows(json=False)
    monkeypatch.setenv(name, value)

    with progress("cancel", 10, json=False) as bar:
        bar.to(10)

    assert terminal.getvalue() == ""


def test_there_is_none_beside_json_nor_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_a_terminal(monkeypatch)
    assert not shows(json=True)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not shows(json=False)


def test_the_bar_of_a_job_shows_its_own_progress_and_a_clean_note(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_a_terminal(monkeypatch)
    job = running(engine)
    holder = engine.run(store.read([job.id]))[job.id].holder or ""
    note = "half \x1b[2Jway"
    engine.run(store.progress(job.id, holder=holder, attempt=job.attempt, percent=50.0, note=note))
    shown = threading.Event()
    real = terminal.write

    def write(text: str) -> int:
        if "50%" in text:
            shown.set()
        return real(text)

    terminal.write = write  # type: ignore[method-assign]
    with following(Handle(Client(engine), job.id, bytes), json=False):
        assert shown.wait(PATIENCE_S)

    assert "half \\x1b[2Jway" in click.unstyle(terminal.getvalue())
    assert "\x1b[2J" not in terminal.getvalue()


@pytest.fixture
def waiting(
    lite: SqliteEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., AbstractContextManager[Shell]]]:
    """`submit --wait` in a terminal, while its bar is shown and no worker runs the job."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCEROW_URL", url_of(lite))
    monkeypatch.delenv("NO_COLOR", raising=False)
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # children inherit that it is ignored
    yield lambda: terminal("submit", "-A", "shop", "send", "to=ada", "--wait")
    signal.signal(signal.SIGINT, before)


HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def test_sigterm_ends_a_command_and_leaves_the_cursor_visible(
    waiting: Callable[..., AbstractContextManager[Shell]],
) -> None:
    with waiting() as shown:
        shown.until("queued")
        shown.process.terminate()
        code = shown.ended()

    assert code == -signal.SIGTERM
    assert shown.shown.rindex(SHOW) > shown.shown.rindex(HIDE)


def test_ctrl_c_interrupts_it_and_leaves_the_cursor_visible(
    waiting: Callable[..., AbstractContextManager[Shell]],
) -> None:
    with waiting() as shown:
        shown.until("queued")
        os.kill(shown.process.pid, signal.SIGINT)
        code = shown.ended()

    assert code == exits.INTERRUPTED
    assert shown.shown.rindex(SHOW) > shown.shown.rindex(HIDE)
