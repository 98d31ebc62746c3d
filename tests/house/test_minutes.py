"""What CI costs is counted, and printed where people look."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.cost import used_s
from tools import minutes

WORK = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\nsys.stdin.read()"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells of those that still run")
def test_what_a_process_below_uses_is_counted_while_it_runs() -> None:
    before_s = used_s()

    with subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline()
        running_s = used_s()

    assert running_s - before_s >= 0.25
    assert used_s() >= running_s - 0.05  # nothing is lost when it ends: clocks tick in hundredths


def test_the_table_names_the_steps_and_the_folders_that_cost_most(tmp_path: Path) -> None:
    (tmp_path / "steps.tsv").write_text("90\tchecks\n600\tall tests\n")
    (tmp_path / "tests.json").write_text(json.dumps({"tests/race": 300.4, "tests/a": 4.0, "tests/b": 5.0}))
    (tmp_path / "pooled.json").write_text(json.dumps({"tests/race": 20.0, "tests/b": 1.0}))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{minutes.BEGIN}old{minutes.END}after\n")

    minutes.write(page, tmp_path)

    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| checks | 1.5 |" in text and "| together | 11.5 |" in text
    assert "| `tests/race` | 300 | 20 |\n| all others | 9 | 1 |\n| together | 309 | 21 |" in text


def test_the_page_has_its_place() -> None:
    text = minutes.PAGE.read_text("utf-8")

    assert text.index(minutes.BEGIN) < text.index(minutes.END)
