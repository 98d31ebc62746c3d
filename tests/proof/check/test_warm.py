"""Starters are forks of one warm process, and each begins as a process that was just started."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencerow_proof.check.director import Director
from fencerow_proof.check.options import Options
from fencerow_proof.check.scratch import private_folder, remove_folder
from fencerow_proof.check.warm import warm
from fencerow_proof.check.wire import Loaded

SHOP = """
import builtins, os
from fencerow import App
assert not hasattr(builtins, "met"), "somebody was here before"
builtins.met = True
app = App(os.environ["FENCEROW_URL"])
@app.job(name=os.environ["NAMED"] + "_in_" + os.path.basename(os.getcwd()), queue="{queue}")
def sell() -> None: ...
"""


@contextmanager
def loaded(named: str) -> Iterator[Loaded]:
    folder = private_folder()
    preset = {"FENCEROW_URL": "sqlite:///shop.db", "NAMED": named}
    director = Director(folder, Options(job=f"shop:{named}_in_{Path.cwd().name}"), preset)
    try:
        yield director.load()
    finally:
        director.close()
        remove_folder(folder)


@pytest.fixture(autouse=True)
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "shop.py"


def test_each_starter_reads_the_application_its_environment_and_its_folder_anew(
    importable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importable.write_text(SHOP.format(queue="old"))
    monkeypatch.setenv("ODD", os.fsdecode(b"no text: \xff"))
    with loaded("sale") as first:
        mine = warm(Path(os.devnull)).pid
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        importable.write_text(SHOP.format(queue="newer"))
        with loaded("return") as second:
            assert warm(Path(os.devnull)).pid == mine

    assert (first.queue, second.queue) == ("old", "newer")
    assert (first.name, second.name) == (f"sale_in_{tmp_path.name}", "return_in_elsewhere")


def test_a_warm_process_that_was_killed_is_replaced(importable: Path, tmp_path: Path) -> None:
    importable.write_text(SHOP.format(queue="sales"))
    before = warm(tmp_path / "log")
    os.kill(before.pid, signal.SIGKILL)
    os.waitid(os.P_PID, before.pid, os.WEXITED | os.WNOWAIT)

    with loaded("sale") as found:
        assert found.queue == "sales"
    assert warm(tmp_path / "log").pid != before.pid
