"""The gate's verdict on tests that are unlucky, guilty, deadly, hanging or not there: played on a tree of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.pace import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
TAKEN = ("tools/gate.py", "tests/kit/forks.py", "tests/kit/verdicts.py")
# No plugin but those that it needs: others take longer to import than all of this to play.
DEV = """
import os, sys
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
words = [sys.executable, "-m", "pytest", "-p", "pytest_timeout", "--forks", "1", "-ra", *sys.argv[2:]]
os.execv(sys.executable, [*words, "--timeout", "5"])
"""
CONFTEST = """
pytest_plugins = ["tests.kit.forks", "tests.kit.verdicts"]
def pytest_addoption(parser): parser.addoption("--cost")
"""
FINE = "def test_fine(): pass\n"
UNLUCKY = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("name", [f"a b::[{n}]" for n in range({count})])
def test_unlucky(name):
    been = Path(name)
    if not been.exists():
        been.touch()
        raise AssertionError("a stall")

@pytest.fixture
def late():
    yield
    test_unlucky("late")

def test_unlucky_at_its_end(late): pass

def test_skipped(): pytest.skip("not here")
"""
GUILTY = """
import os, threading

def test_deadly(): os._exit(1)
def test_deadly_with_a_child():  # which holds the line to the parent open
    if os.fork(): os._exit(1)
    threading.Event().wait()
def test_hangs(): threading.Event().wait()
def test_guilty(): assert False, "always"
"""


@dataclass
class Verdict:
    code: int
    out: str
    kept: Path

    def named(self, word: str) -> set[str]:
        """The tests of which the gate said so; pytest adds a reason to each."""
        lines = [line for line in self.out.splitlines() if line.startswith(f"{word} ") and " - " not in line]
        return {line.partition("::")[2] for line in lines}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TAKEN:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "dev.py").write_text(DEV)
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "tests" / "test_fine.py").write_text(FINE)
    return tmp_path


def judged(tree: Path, left_s: float = PATIENCE_S) -> Verdict:
    command = [sys.executable, "-m", "tools.gate"]
    environment = {"PATH": "/usr/bin:/bin", "GATE_UNTIL": str(time.time() + left_s)}
    said = subprocess.run(
        [*command, "toy", "--durations", "3"],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    summed = subprocess.run([*command, "--sum"], cwd=tree, capture_output=True, text=True, check=False)
    assert summed.returncode == said.returncode, "the sum is red when a run was"
    return Verdict(said.returncode, said.stdout + summed.stdout, tree / ".fencerow" / "ci" / "toy.unlucky")


def test_who_fails_once_and_then_passes_is_named_and_stops_nobody(tree: Path) -> None:
    (tree / "tests" / "test_unlucky.py").write_text(UNLUCKY.replace("{count}", "2"))

    verdict = judged(tree)

    assert verdict.code == 0, verdict.out
    unlucky = {"test_unlucky[a b::[0]]", "test_unlucky[a b::[1]]", "test_unlucky_at_its_end"}
    assert verdict.named("UNLUCKY") == unlucky
    assert "a stall" in verdict.kept.read_text()
    assert verdict.out.splitlines()[-1] == "gate: 4 passed, 0 failed, 1 skipped"


@pytest.mark.prove  # ten more rounds of pytest
def test_more_than_a_few_unlucky_ones_prove_nothing(tree: Path) -> None:
    (tree / "tests" / "test_unlucky.py").write_text(UNLUCKY.replace("{count}", "9"))

    verdict = judged(tree)

    assert verdict.code == 1
    assert "10 unlucky tests are more than 8" in verdict.out


def test_who_fails_again_hangs_or_takes_its_process_along_is_guilty(tree: Path) -> None:
    (tree / "tests" / "test_guilty.py").write_text(GUILTY)

    verdict = judged(tree)

    assert verdict.code == 1
    assert verdict.named("FAILED") == {"test_hangs", "test_guilty", "test_deadly", "test_deadly_with_a_child"}
    assert verdict.out.splitlines()[-1] == "gate: 1 passed, 4 failed, 0 skipped"


def test_what_is_not_collected_makes_it_red(tree: Path) -> None:
    (tree / "tests" / "test_broken.py").write_text("def test_broken(:\n")

    verdict = judged(tree)

    assert verdict.code == 1
    assert "not collected: tests/test_broken.py" in verdict.out


def test_what_was_not_played_when_the_time_is_over_has_not_passed(tree: Path) -> None:
    (tree / "tests" / "test_slow.py").write_text("import time\ndef test_slow(): time.sleep(4)\n")

    verdict = judged(tree, left_s=3)

    assert verdict.code == 1
    assert "the time is over for toy" in verdict.out
