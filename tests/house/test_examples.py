"""Each example runs as it stands, in an empty folder, and says what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.kit.program import printed

EXAMPLES = ROOT / "examples"

SAYS = {
    "hello.py": """\
same job: True replay: True
words: 4
""",
    "retry_and_cancel.py": """\
fetched: news after 3 attempts
failed: card 4711 was refused
while it waits, a cancel is cancelled
while it runs, a cancel is requested
state: cancelled
""",
    "own_transaction.py": """\
rolled back: umbrella was not paid
jobs: 0
jobs: 1
invoice for order 1
invoices: 1
""",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SAYS, "stage.py"}, "the last is of the shows"


@pytest.mark.parametrize("name", SAYS)
def test_it_says_what_it_should(name: str, tmp_path: Path) -> None:
    assert printed((EXAMPLES / name).read_text("utf-8"), tmp_path) == SAYS[name]


def test_the_readme_shows_the_first_one() -> None:
    """But for blank lines, of which the formatter wants more in the README."""
    program, readme = (EXAMPLES / "hello.py").read_text(), (ROOT / "README.md").read_text()

    assert _without_blank_lines(program) in _without_blank_lines(readme)


def test_they_are_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert [name for name in SAYS if f"({name})" not in listed] == []


def _without_blank_lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip())
