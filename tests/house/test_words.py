"""One word per idea, and one idea per word.

The words that the glossary refuses stand nowhere in code, SQL or documents. A term of the glossary has one row, and the
code has one class of that name. Words that are kept free for later features name nothing new.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.tree import ROOT, python_files, short, tracked
from tools.public.listed import PAGES, entries, records

GLOSSARY = ROOT / "docs" / "glossary.md"
# (word, file or folder): why it may stand there.
ALLOWED = {
    ("task", "docs/when-not-to-use.md"): "names other systems by their own words",
    ("task", "docs/glossary.md"): "refuses it",
    ("task", "src/fencerow/core/worker/stepping.py"): "asyncio's own word for what it is about",
    ("task", "src/fencerow/core/model/retry.py"): "asyncio's task groups",
    ("task", "src/fencerow/core/app/foreign.py"): "answers to verbs of other systems",
    ("enqueue", "src/fencerow/core/app/foreign.py"): "answers to verbs of other systems",
    ("task", "pyproject.toml"): "people search for a task queue",
    ("heartbeat", "docs/when-not-to-use.md"): "names other systems by their own words",
    ("poison pill", "docs/decisions"): "names what others call it",
    ("dead letter", "docs/when-not-to-use.md"): "names other systems by their own words",
}
ASYNCIO = re.compile(r"\basyncio\b")
# Terms that two classes still share. A row may go, none may come.
SHARED = {"event": 2, "group": 2, "lane": 2, "lease": 2, "move": 2}
PROOF = ("src/fencerow/testing/", "src/fencerow_proof/")  # what plays a job has words of its own for it
PROSE = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/")
NOT_OURS = ("docs/reference/", "docs/decisions/", "docs/evidence/")


def terms() -> list[tuple[str, str, list[str]]]:
    """Term, meaning and refused words of each row."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|(.*?)\|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return [
        (term, meaning, [word.strip() for word in refused.split(",") if word.strip()])
        for term, meaning, refused in rows
        if term != "term"
    ]


def two_columns(chapter: str) -> list[tuple[str, str]]:
    """The rows of a table of two columns in a chapter of the glossary."""
    text = GLOSSARY.read_text("utf-8").split(f"## {chapter}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    return [(word, use) for word, use in rows if word != "word"]


FREE = [word for word, _ in two_columns("Words that are kept free")]
PUZZLES = [
    word.strip() for row, _ in two_columns("Words that these pages do not use") for word in row.split(",")
]
REFUSED = sorted({word for _, _, refused in terms() for word in refused})


def pattern(word: str) -> re.Pattern[str]:
    """The word alone or as a part of a name, in any case: `task`, `tasks`, `task_id`, `TaskQueue`."""
    stem = re.escape(word).replace(r"\ ", r"[\s_-]?")
    return re.compile(rf"(?i:(?<![A-Za-z]){stem}s?(?![a-z]))|(?<=[a-z]){stem.capitalize()}")


def allowed(word: str, name: str, text: str) -> bool:
    # asyncio calls its own things so, and a variable that holds one may say it.
    if word == "task" and ASYNCIO.search(text):
        return True
    return any(word == known and name.startswith(place) for known, place in ALLOWED)


def looked_at() -> list[tuple[str, str]]:
    files = []
    for path in tracked():
        name = short(path)
        ours = name.startswith(("src/", "docs/", "examples/")) or name in ("README.md", "pyproject.toml")
        if ours and path.suffix in (".py", ".sql", ".md", ".toml") and path != GLOSSARY:
            files.append((name, path.read_text("utf-8")))
    return files


def test_the_glossary_is_in_order_and_names_nothing_twice() -> None:
    names = [term for term, _, _ in terms()]
    assert len(names) > 40
    assert names == sorted(set(names), key=str.lower)
    assert not {name.lower() for name in names} & {word.lower() for word in REFUSED}


@pytest.mark.parametrize("word", REFUSED)
def test_a_refused_word_stands_nowhere(word: str) -> None:
    found = [
        f"{name}: {match.group(0)!r}"
        for name, text in looked_at()
        if not allowed(word, name, text)
        for match in [pattern(word).search(text)]
        if match
    ]
    assert found == []


def test_a_refused_word_would_be_found() -> None:
    for text in ("def enqueue(", "x.enqueue_many", "Enqueue a job"):
        assert pattern("enqueue").search(text)
    assert pattern("dead letter").search("dead_letter_queue")
    assert not pattern("task").search("multitasking")


def test_a_word_is_refused_for_one_term_only() -> None:
    refused = [word.lower() for _, _, words in terms() for word in words]
    assert sorted(refused) == sorted(set(refused))


def classes() -> Iterator[tuple[str, str]]:
    """Each class that the product defines: the words of its name, and where it is."""
    for path in python_files("src"):
        if short(path).startswith(PROOF):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield words_of(node.name), f"{short(path)}: {node.name}"


def words_of(name: str) -> str:
    """`WakeUp` is a wake-up: the words of the name in small letters."""
    return " ".join(re.findall(r"[A-Z][a-z0-9]*", name)).lower()


def test_a_term_has_one_class_of_its_name() -> None:
    named = {term.lower().replace("-", " "): term for term, _, _ in terms()}
    found: dict[str, list[str]] = {}
    for words, where in classes():
        if words in named:
            found.setdefault(named[words], []).append(where)
    assert len(found) > 20, "the test looks at nothing"
    assert {term: where for term, where in found.items() if len(where) > SHARED.get(term, 1)} == {}


def test_a_second_class_would_be_found() -> None:
    assert words_of("LogLine") == "log line"
    assert words_of("WorkerLease") != "lease"


def test_words_that_are_kept_free_name_nothing_new() -> None:
    public = {each.name for page in PAGES for each in (*entries(page), *records(page))}
    taken = {name for name in public if name.lower() in FREE}
    assert {"home", "signal", "step"} <= set(FREE)
    assert taken == set()
    assert not set(FREE) & {term for term, _, _ in terms()}


@pytest.mark.parametrize("word", PUZZLES)
def test_pages_do_without_words_that_puzzle(word: str) -> None:
    searched = re.compile(rf"\b{word}\b".replace(" ", r"\s+"), re.IGNORECASE)
    pages = [
        (name, path.read_text("utf-8"))
        for path in tracked()
        for name in [short(path)]
        if path.suffix == ".md"
        and name.startswith(PROSE)
        and not name.startswith(NOT_OURS)
        and path != GLOSSARY
    ]
    assert len(pages) > 20
    assert [name for name, text in pages if searched.search(text)] == []
