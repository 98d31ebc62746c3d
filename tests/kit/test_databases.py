"""Files of tests lie in memory, which a process that is killed does not give back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fencerow.testing.pg_home import sweep
from tests.house.tree import ROOT
from tests.kit.databases import PREFIX

SCRATCHES = """
import sys
from tests.kit.databases import scratch_folder

with scratch_folder() as made:
    print(made, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_scratched_goes_with_the_next_sweep() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRATCHES], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip()).parent
        os.utime(left, (0, 0))  # one that is being made is spared for a minute
        sweep(left.parent, PREFIX)
        assert left.exists(), "its owner lives"
        owner.kill()
        owner.wait()

    sweep(left.parent, PREFIX)

    assert not left.exists()
