"""One word per idea: the words that the glossary refuses stand nowhere in code, SQL or documents."""

from __future__ import annotations

import re

import pytest

from tests.house.tree import ROOT, short, tracked

GLOSSARY = ROOT / "docs" / "glossary.md"
# (word, file or folder): why it may stand there.
ALLOWED = {
    ("task", "docs/when-not-to-use.md"): "names other systems by their own words",
    ("task", "docs/glossary.md"): "refuses it",
    ("task", "src/fencerow/core/worker/stepping.py"): "asyncio's own word for what it is about",
    ("task", "src/fencerow/core/model/retry.py"): "asyncio's task groups",
    ("task", "pyproject.toml"): "people search for a task queue",
    ("heartbeat", "docs/when-not-to-use.md"): "names other systems by their own words",
    ("poison pill", "docs/decisions"): "names what others call it",
    ("dead letter", "docs/when-not-to-use.md"): "names other systems by their own words",
}
ASYNCIO = re.compile(r"\basyncio\b")


def terms() -> list[tuple[str, str, list[str]]]:
    """Term, meaning and refused words of each row."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|(.*?)\|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return [
        (term, meaning, [word.strip() for word in refused.split(",") if word.strip()])
        for term, meaning, refused in rows
        if term != "term"
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
