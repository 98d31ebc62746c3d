"""`--loop uvloop` reaches this process, those that it starts, and forks of the server of forks.

`dev.py prove` plays this there: Python goes on in its own event loop where it could not read our `sitecustomize`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import forking
from tests.kit.loops import module_path

LOOP = "import asyncio; print(type(asyncio.new_event_loop()).__module__)"


def write_loop(path: Path) -> None:
    with asyncio.Runner() as runner:
        path.write_text(type(runner.get_loop()).__module__)


def test_all_processes_make_the_event_loop_that_was_asked_for(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fork = forking.context.Process(target=write_loop, args=(tmp_path / "fork",))
    fork.start()
    fork.join()
    write_loop(tmp_path / "here")
    environment = {"PYTHONPATH": module_path(tmp_path)}
    child = subprocess.run([sys.executable, "-c", LOOP], env=environment, stdout=subprocess.PIPE, text=True)

    found = [child.stdout.strip(), *(each.read_text() for each in tmp_path.iterdir())]
    assert found == [request.config.getoption("--loop") or "asyncio.unix_events"] * 3
