"""The command where only the package itself is installed: it says what to install, and everything else works."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fencerow.core.errors import exits

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "fencerow_proof":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from fencerow.cli.main import main
main(sys.argv[1:])
"""


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ("check", "shop:sell", "--args", "{}", "--two-jobs"),
        ("check", "--help"),
        ("check",),
        ("history", "check", "folder", "--undrained"),
        ("history",),
    ],
    ids=" ".join,
)
def test_what_comes_with_the_proofs_says_in_three_lines_what_to_install(words: tuple[str, ...]) -> None:
    done = command(*words)

    said, why, fix = done.stderr.splitlines()
    assert done.returncode == exits.REFUSED and done.stdout == ""
    assert said.startswith("FR-103: ") and f"`fencerow {words[0]}`" in said and "fencerow-proof" in said
    assert why.strip() == "the proofs are a package of their own, so that programs without them install less"
    assert fix.strip() == 'python -m pip install "fencerow[proof]"'


def test_the_rest_of_the_command_works_and_names_them() -> None:
    done = command("--help")

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Not installed: comes with fencerow[proof].") == 2


def test_a_module_that_the_proofs_lack_is_not_taken_for_the_proofs() -> None:
    broken = WITHOUT.replace('"fencerow_proof"', '"fencerow_proof.check.command"')
    done = subprocess.run([sys.executable, "-c", broken, "check"], capture_output=True, text=True, timeout=60)

    assert done.returncode == 70 and "fencerow_proof.check.command" in done.stderr
    assert "FR-103" not in done.stderr
