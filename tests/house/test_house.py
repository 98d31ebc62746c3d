"""`python -m tools.house`, which `dev.py check` runs."""

from __future__ import annotations

import pytest

from tools.house.__main__ import main


def test_each_fault_is_a_line_and_any_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    checks = (lambda: iter(["a.md: mend it"]), lambda: iter(["b.md: take it out", "c.md: mend it"]))

    assert main(checks) == 1
    assert capsys.readouterr().out == "a.md: mend it\nb.md: take it out\nc.md: mend it\n"
    assert main(()) == 0
