"""The first test that forks decides nothing for those that fork after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT

FORKS = """
import os, subprocess
from tests.kit.forking import context

if __name__ == "__main__":
    os.environ["OF_A_TEST"] = "left"
    child = context.Process(target=subprocess.call, args=(["sh", "-c", "echo mine $OF_A_TEST"],))
    child.start()
    child.join()
    print(os.environ["OF_A_TEST"], child.exitcode)
"""


@pytest.mark.prove
def test_forks_have_the_environment_of_the_run(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(FORKS)

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert done.stdout.splitlines() == ["mine", "left 0"], done.stderr
