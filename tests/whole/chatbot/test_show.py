"""The whole show, with real processes and kill -9, on files and on PostgreSQL; and how little code it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.kit.authors import GUARDS, code_of, with_guard

CHATBOT = ROOT / "examples" / "chatbot"
RECIPIENTS = 100
# What an author writes who has no guards: none of it stands in the example.
FORBIDDEN = (*GUARDS, "UPDATE recipients", "UPDATE chunks")
# What the show and the world outside are made of is no part of the chatbot.
SYSTEM = (
    "base.py",
    "broadcast.py",
    "chunking.py",
    "embedding.py",
    "inbound.py",
    "knowledge.py",
    "messages.py",
    "reading.py",
    "receiver.py",
    "service.py",
    "shards.py",
    "web.py",
)
LINES_MAX = 550


@pytest.mark.parametrize("databases", ["sqlite", "postgres"], indirect=True)
def test_it_ends_with_everybody_sent_to_once(databases: tuple[str, list[str]]) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
    url, shards = databases
    arguments = ["--recipients", str(RECIPIENTS), "--url", url, "--shards", *shards]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.chatbot", *arguments],
        cwd=ROOT,
        env=ours | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    said = done.stdout
    assert "a second run finds nothing to do" in said
    assert "provider calls: 4; for the same files again: 0" in said
    assert "version 4: replaced; then version 3: outdated" in said
    assert "24 events brought, 4 of them new, 4 answers sent" in said
    assert f"{RECIPIENTS - 2} deliveries to {RECIPIENTS - 2} addresses" in said


@pytest.mark.parametrize("word", FORBIDDEN)
def test_it_has_no_guard_of_its_own(word: str) -> None:
    assert with_guard(word, sources()) == []


def test_it_is_little_code_and_the_readme_says_how_much() -> None:
    python = sum(len(code_of(CHATBOT / name)) for name in SYSTEM)
    sql = sum(len(code_of(path)) for path in CHATBOT.glob("steps/*/*.sql"))
    readme = (CHATBOT / "README.md").read_text("utf-8")

    assert python <= LINES_MAX
    assert f"{python} lines of Python and {sql} of SQL" in readme.replace("\n", " ")
    assert f"of which the broadcast takes {len(code_of(CHATBOT / 'broadcast.py'))}" in readme


def sources() -> list[Path]:
    found = [*CHATBOT.glob("*.py"), *CHATBOT.glob("steps/*/*.sql")]
    assert len(found) > 15, "the search looked at nothing"
    return found
