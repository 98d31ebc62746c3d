"""The command where only the package itself is installed: it says what to install, and everything else works."""

from __future__ import annotations

import json
import subprocess
import sys

from fencerow.db.errors import exits
from tests.kit.pace import PATIENCE_S

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "fencerow_proof":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
ONE = """
from fencerow.cli.main import main
main(sys.argv[1:])
"""
# One process for all command lines: to start it costs more than they do.
EACH = """
import contextlib, io, json
from fencerow.cli.main import run
answers = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run(words)
    answers.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""
WANTED = (
    ("check", "shop:sell", "--args", "{}", "--two-jobs"),
    ("check", "--help"),
    ("check",),
    ("history", "check", "folder", "--undrained"),
    ("history",),
    ("rerun", "01a2", "--here"),
)


def python(text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_what_comes_with_the_proofs_says_what_to_install_and_the_rest_works() -> None:
    done = python(WITHOUT + EACH, json.dumps([*WANTED, ("--help",)]))

    assert done.returncode == 0, done.stderr
    *answers, (helped, shown, _) = json.loads(done.stdout)
    for words, (code, out, err) in zip(WANTED, answers, strict=True):
        said, why, fix = err.splitlines()
        assert (code, out) == (exits.REFUSED, ""), words
        assert said.startswith("FR-103: ") and f"`fencerow {words[0]}`" in said and "fencerow-proof" in said
        assert (
            why.strip() == "the proofs are a package of their own, so that programs without them install less"
        )
        assert fix.strip() == 'python -m pip install "fencerow[proof]"'
    assert helped == 0
    assert shown.count("Not installed: comes with fencerow[proof].") == 3


def test_a_module_that_the_proofs_lack_is_not_taken_for_the_proofs() -> None:
    broken = WITHOUT.replace('"fencerow_proof"', '"fencerow_proof.check.command"')
    done = python(broken + ONE, "check")

    assert done.returncode == 70 and "fencerow_proof.check.command" in done.stderr
    assert "FR-103" not in done.stderr
