"""Pages that are printed from the code are what it prints; every error and every setting has its place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fencerow import Config
from fencerow.core.config import settings
from fencerow.errors import FencerowError
from tests.house.tree import ROOT
from tools import life_of_a_job
from tools import settings as settings_page
from tools.public.errors import kinds

DOCS = ROOT / "docs"
CLASSES = kinds()


def test_the_life_of_a_job_is_what_the_table_prints() -> None:
    assert (DOCS / "life-of-a-job.md").read_text("utf-8") == life_of_a_job.page(), (
        "run: python3 tools/life_of_a_job.py > docs/life-of-a-job.md"
    )


def test_the_settings_are_what_config_prints() -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    assert page == settings_page.page(), "run: python3 tools/settings.py > docs/settings.md"
    for setting in settings(Config):
        assert f"`{setting.name}`" in page and setting.environment_name in page
        assert setting.doc.endswith("."), f"{setting.name}: say what it means in a sentence"


def test_the_views_are_what_the_commands_show() -> None:
    words = [sys.executable, "-m", "tools.views"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert shown.returncode == 0, shown.stderr
    page = (DOCS / "views.md").read_text("utf-8")
    assert page == shown.stdout, "run: .venv/bin/python -m tools.views > docs/views.md"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_has_a_code_of_its_own_a_docstring_and_a_paragraph(kind: type[FencerowError]) -> None:
    assert re.fullmatch(r"FR-\d{3}", kind.code)
    assert "code" in vars(kind), "a code of its own, not its parent's"
    assert [other for other in CLASSES if other.code == kind.code] == [kind]
    assert kind.__module__ in ("fencerow.errors", "fencerow_proof.errors"), (
        "its public name is what is stored"
    )
    assert kind.repeat in ("yes", "no", "ask")
    assert kind.__doc__ and vars(kind)["__doc__"]
    assert len(paragraph(kind)) > 60, "say what it is, why it comes, and what to do"


def paragraph(kind: type[FencerowError]) -> str:
    page = (DOCS / "errors.md").read_text("utf-8")
    found = re.search(rf"^### {kind.code} {kind.__name__}\n(.+?)(?=\n\n#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"docs/errors.md has no paragraph for {kind.code} {kind.__name__}"
    return found[1]


def test_the_page_of_errors_names_none_that_does_not_exist() -> None:
    page = (DOCS / "errors.md").read_text("utf-8")
    headings = re.findall(r"^### (FR-\d{3}) (\w+)$", page, re.MULTILINE)
    assert headings == [(kind.code, kind.__name__) for kind in CLASSES]


def test_the_first_code_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    block = re.search(
        r"^```python\n(.+?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert block, "the README shows no code"
    (tmp_path / "hello.py").write_text(block[1], "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}

    done = subprocess.run(
        [sys.executable, "hello.py"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for word in re.findall(r'print\("([\w ]+):"', block[1]):
        assert f"{word}:" in done.stdout
