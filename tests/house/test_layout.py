"""Floors, sizes, and what no committed file may contain."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, python_files, short, tracked

# Written in parts so that this file does not find itself.
FORBIDDEN = {
    "a package index": re.compile(r"\b(py" + r"pi|files\.pythonhosted|test\.py" + r"pi)\.(org|io)\b"),
    "another index or mirror": re.compile(
        r"\b(extra-)?(index" + r"-url|art" + r"ifactory|registry\.npmjs)\b"
    ),
    "a path of somebody's machine": re.compile(
        r"(?<![\w.])(/wo" + r"rk/|/tmp/" + r"wt|/ro" + r"ot/|/ho" + r"me/(?!user\b|me\b|you\b))"
    ),
}
# The lock's own command spells the options that keep an index out of it.
ALLOWED = {("dev.py", "another index or mirror")}


def test_imports_go_down_only() -> None:
    """The contract is in pyproject.toml; `dev.py check` runs the same."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo", "--config", "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": "src"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_largest_files_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A report, no limit: at about 350 lines look for the seam."""
    sizes = sorted(
        ((len(path.read_text("utf-8").splitlines()), path) for path in python_files("src")), reverse=True
    )
    with capsys.disabled():
        sys.stdout.write("\nthe ten largest files:\n")
        for lines, path in sizes[:10]:
            sys.stdout.write(f"  {lines:5} {short(path)}\n")
    assert len(sizes) > 30, "the report looked at nothing"


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_committed_file_names(what: str) -> None:
    found = [
        f"{short(path)}:{number}: {line.strip()[:100]}"
        for path in tracked()
        if (short(path), what) not in ALLOWED
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert found == []


def test_what_is_forbidden_would_be_found() -> None:
    assert FORBIDDEN["a package index"].search("see https://py" + "pi.org/simple")
    assert FORBIDDEN["a path of somebody's machine"].search("cd /wo" + "rk/main")
    assert not FORBIDDEN["a path of somebody's machine"].search("https://example.com/wo" + "rk/x")


def test_nobody_decides_by_the_name_of_an_engine() -> None:
    """What is so of an engine is said by its traits; its dialect chooses the text of statements."""
    named = re.compile(r"engine\.dialect\s*(?:==|!=|in\b|not in\b)")
    assert named.search('if self._engine.dialect == "postgres":')
    assert [short(path) for path in python_files("src") if named.search(path.read_text("utf-8"))] == []


def test_nothing_is_ever_pickled() -> None:
    """Reading a row, or hearing from a child process, must run nothing."""
    unsafe = re.compile(
        r"^\s*(?:import|from) (?:c?[pP]ickle|marshal|shelve|dill|cloudpickle|multiprocessing)\b", re.MULTILINE
    )
    assert unsafe.search("import pickle") and unsafe.search("    from multiprocessing import Queue")
    assert [short(path) for path in python_files("src") if unsafe.search(path.read_text("utf-8"))] == []


def test_the_changelog_has_its_shape() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading), heading
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_links_between_our_pages_lead_somewhere() -> None:
    broken = [
        f"{short(path)} -> {target}"
        for path in tracked()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
        if not (path.parent / target).exists()
    ]
    assert broken == [], "those of docs/reference/ are mended by: .venv/bin/python -m tools.reference"


def test_paths_that_pages_name_are_there() -> None:
    missing = [
        f"{short(path)}: {named}"
        for path in tracked()
        if path.suffix == ".md" and not short(path).startswith("docs/evidence/")
        for named in re.findall(
            r"`((?:src|tests|docs|tools|examples|bench|\.ci)/[\w./-]*\w)", path.read_text("utf-8")
        )
        if not (ROOT / named).exists()
    ]
    assert missing == []


def test_links_to_a_part_of_a_page_lead_to_one() -> None:
    pages = [path for path in tracked() if path.suffix == ".md"]
    parts = {path.resolve(): anchors(path.read_text("utf-8")) for path in pages}
    broken = [
        f"{short(path)} -> {target}#{part}"
        for path in pages
        for target, part in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", path.read_text("utf-8"))
        if part not in parts.get((path.parent / target if target else path).resolve(), set())
    ]
    assert broken == []


def anchors(page: str) -> set[str]:
    """What a link may name: anchors, and headings as they are turned into anchors by the usual sites."""
    words = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"<a id=\"([^\"]+)\"></a>", page))
