"""The first test that forks decides nothing for those that fork after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fencerow
from tests.house.tree import ROOT

# The package that is tested, which need not be the one that is installed.
OURS = os.pathsep.join((str(ROOT), str(Path(fencerow.__file__).parents[1])))

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
        env={"PYTHONPATH": OURS},
        capture_output=True,
        text=True,
    )

    assert done.stdout.splitlines() == ["mine", "left 0"], done.stderr
