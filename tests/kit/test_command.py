"""A forked command is a process as any other: what it is given, what it says, how it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fencerow.db.errors import exits
from tests.kit.command import Command
from tests.kit.pace import PATIENCE_S

APP = """
import os, sys, time
print("warm" if "tests.kit.warm" in sys.modules else "cold")
from fencerow import App
print(os.getcwd(), os.environ.get("OF_THIS_ONE"), os.getpid(), flush=True)
app = App()
if "WAITS" in os.environ:
    time.sleep(600)
"""


def test_it_has_a_folder_an_environment_streams_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    monkeypatch.chdir(tmp_path)

    ended = Command(["worker", "-A", "shop:app"], {"OF_THIS_ONE": "given"})
    out, err = ended.communicate(timeout=PATIENCE_S)
    assert out == f"warm\n{tmp_path} given {ended.pid}\n" and ended.pid != os.getpid()
    assert ended.returncode == exits.REFUSED and err.startswith("FR-105: "), err

    with Command(["worker", "-A", "shop:app"], {"WAITS": "1"}) as killed:
        assert killed.stdout.readline() == "warm\n"
        assert killed.stdout.readline() == f"{tmp_path} None {killed.pid}\n"
        assert killed.poll() is None
        killed.kill()
    assert killed.returncode == -signal.SIGKILL
