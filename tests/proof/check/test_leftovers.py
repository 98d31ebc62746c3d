"""What a slow machine and a killed run leave to a check: processes that wait for a processor, and folders."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencerow_proof.check.director import Director
from fencerow_proof.check.process import Process
from fencerow_proof.check.scratch import private_folder, remove_folder
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S

KEEPS = (
    "from fencerow_proof.check.scratch import private_folder; print(private_folder(), flush=True); input()"
)


@contextmanager
def started(code: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and the first line that it says."""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who waits for a processor")
@pytest.mark.parametrize(("then", "stands"), [("\nwhile True: pass", False), ("; input()", True)])
def test_who_computes_for_long_waits_for_nobody(
    then: str, stands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others would go on meanwhile, and orders that were asked for would not be played."""
    monkeypatch.setattr(Director, "_is_blocked", lambda *_: False)
    director = Director.__new__(Director)
    with started(f"print(flush=True){then}") as (child, _):
        process = Process(None, child.pid)  # type: ignore[arg-type]
        process.heard_at -= 60.0
        until = time.monotonic() + PATIENCE_S
        while stands and process.is_at_work and time.monotonic() < until:
            time.sleep(0.01)

        assert director._stands(None, process) is stands  # type: ignore[arg-type]


def test_the_folder_of_a_check_that_was_killed_goes_with_the_next_check() -> None:
    with started(KEEPS) as (owner, folder):
        left = Path(folder)
        os.utime(left, (0, 0))  # one that is being made is spared for a minute
        remove_folder(private_folder())
        assert left.exists(), "its owner lives"
        owner.kill()
        owner.wait()

    remove_folder(private_folder())

    assert not left.exists()
