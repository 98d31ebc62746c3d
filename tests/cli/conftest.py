"""The command as a person has it: words in; exit code, output and errors out. Both databases, fresh each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fencerow
from fencerow.cli import main
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.kit.command import Command
from tests.kit.environment import forget_settings
from tests.kit.stopping import signals_heeded

SHOP = """
import asyncio
from fencerow import App, Fail, Job

app = App()

@app.job(queue="mail")
async def send(to: str, n: int = 1) -> dict:
    return {"to": to, "n": n}

@app.job(queue="mail", attempts_max=1)
async def fail(text: str) -> None:
    raise Fail(text)

@app.job(queue="slow")
async def slow(job: Job, started: str) -> str:
    open(started, "w").close()
    await asyncio.sleep(600)
    return "done"
"""


@dataclass(frozen=True)
class Result:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output as the one JSON document that it must be."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The code of the error: three lines and no traceback."""
        lines = self.err.splitlines()
        assert len(lines) == 3, self.err
        assert all(line.strip("- ") for line in lines), f"a line says nothing: {self.err}"
        assert "Traceback" not in self.out + self.err
        return lines[0].partition(":")[0]


Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No setting of the machine, a folder of its own, and no module left behind."""
    forget_settings(monkeypatch)
    monkeypatch.setenv("FENCEROW_URL", "")
    monkeypatch.delenv("COLUMNS", raising=False)  # a pipe has no width, whoever runs the tests
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("shop", "broken", "other")):
            del sys.modules[name]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run one command line in this process."""

    def run(*words: str) -> Result:
        capsys.readouterr()
        code = main.run(list(words))
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return run


@pytest.fixture
def url(engine: SqliteEngine | PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a fresh migrated database of each kind, set in the environment."""
    text = url_of(engine)
    monkeypatch.setenv("FENCEROW_URL", text)
    return text


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An application with three jobs; returns what -A takes."""
    (tmp_path / "shop.py").write_text(SHOP)
    return "shop:app"


def command(*words: str) -> Command:
    """The command as a process of its own, which has imported it already (tests/kit/command.py)."""
    return Command(words, os.environ)


def new_command(*words: str, **options: Any) -> subprocess.Popen[str]:
    """The command as a process of its own, as a person starts it: for what hangs on its first or its last moment."""
    path = str(Path(fencerow.__file__).parents[1])
    with signals_heeded():
        return subprocess.Popen(
            [sys.executable, "-m", "fencerow.cli.main", *words],
            env={**os.environ, "PYTHONPATH": path},
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )


def url_of(engine: SqliteEngine | PostgresEngine) -> str:
    return f"sqlite:///{engine.path}" if isinstance(engine, SqliteEngine) else engine.conninfo
