from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.prove

TYPED = Path(__file__).with_name("typed.py")
ROOT = TYPED.parents[3]
IGNORE = re.compile(r"  # type: ignore.*")


def complaints(file: Path, *command: str) -> set[int]:
    """The lines of a file that a type checker refuses."""
    done = subprocess.run(
        [sys.executable, "-m", *command, str(file)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return {int(found) for found in re.findall(rf"{file.name}:(\d+):(?:\d+)?.* error", done.stdout)}


@pytest.mark.parametrize(
    "command",
    [
        ("mypy", "--strict", "--no-incremental", "--follow-imports=silent"),
        ("basedpyright", "--level", "error", "--pythonpath", sys.executable),
    ],
    ids=["mypy", "basedpyright"],
)
def test_type_checkers_know_the_parameters_and_results_of_jobs(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    lines = TYPED.read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if IGNORE.search(line)}
    bare = tmp_path / "typed_bare.py"
    bare.write_text("\n".join(IGNORE.sub("", line) for line in lines))

    assert complaints(TYPED, *command) == set()
    assert complaints(bare, *command) == wrong
