"""docs/guide/schedules.md does what it says: its code and its commands, from the page itself."""

from __future__ import annotations

import asyncio
import importlib
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from fencerow import App
from fencerow.testing.clock import clock_of
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.house.tree import ROOT

_clean, cli = command_line._clean, command_line.cli  # fixtures

PAGE = (ROOT / "docs" / "guide" / "schedules.md").read_text("utf-8")
PYTHON = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^fencerow (schedules .+)$", PAGE, re.MULTILINE)
PUT = re.findall(r"`(app\.schedules\.put\(.+?\))`", PAGE)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """The program of the page, in a folder of its own; and the database that it names."""
    (tmp_path / "shop.py").write_text(PYTHON[0], "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("FENCEROW_URL", "sqlite:///shop.db")
    app = importlib.import_module("shop").app
    assert isinstance(app, App)
    return app


async def declared(shop: App) -> list[str]:
    async with shop:
        await shop.schedules.areconcile()
        await shop.schedules.arefresh("check")
        return [each.full_name for each in await shop.schedules.alisted(entities=True)]


def test_what_the_program_declares_is_there_and_the_commands_change_it(shop: App, cli: Cli) -> None:
    assert asyncio.run(declared(shop)) == ["check", "check/f01", "check/f02", "clean", "clean-often"]
    assert len(COMMANDS) == 8
    for line in COMMANDS:
        done = cli(*shlex.split(line))
        assert done.code == 0, f"{line}\n{done.out}{done.err}"


def test_the_test_of_the_page_passes_and_its_put_too(shop: App) -> None:
    names: dict[str, Callable[[App, object], None]] = {}
    exec(compile(PYTHON[1], "schedules.md", "exec"), names)  # noqa: S102
    (test,) = (each for name, each in names.items() if name.startswith("test_"))
    with shop:
        shop.check_or_create()
        test(shop, clock_of(shop.engine))
        assert len(PUT) == 1
        eval(PUT[0], {"app": shop, "clean": shop.jobs["clean"]})  # noqa: S307
        assert shop.schedules.get("nightly").job == "clean"
