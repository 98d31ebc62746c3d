"""docs/reference/ is what the tool writes now, and every public name says what it does and what it raises.

That its links lead somewhere is asked of all pages in test_layout.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.house.tree import ROOT
from tools import reference
from tools.public.errors import by_name
from tools.public.listed import PAGES, Page, entries, records
from tools.public.names import Entry, entry_of, pairs
from tools.public.text import markdown, raises

FOLDER = ROOT / "docs" / "reference"
REMAKE = "run: .venv/bin/python -m tools.reference"
# Not of ours, but for those that a handler raises to say what shall become of its job.
BUILTIN = {
    "ValueError",
    "TypeError",
    "KeyError",
    "TimeoutError",
    "RuntimeError",
    "AssertionError",
    "Snooze",
    "Retry",
}


def each(page: Page) -> Iterator[Entry]:
    """Names of a page and what they have; records have nothing to say of their fields."""
    for entry in (*entries(page), *records(page)):
        yield entry
        yield from entry.members


def test_the_pages_are_what_the_tool_writes() -> None:
    written = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")}

    made = reference.pages()

    assert written.keys() == made.keys(), REMAKE
    assert [name for name in made if made[name] != written[name]] == [], REMAKE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_package_names_its_page_of_the_guide_which_leads_back(page: Page) -> None:
    guides = re.findall(r"docs/[\w/-]+\.md", import_module(page.package).__doc__ or "")

    assert guides, "its docstring ends with `The guide: docs/….md.`"
    link = "reference/index.md" if page is PAGES[0] else f"reference/{page.name}.md"
    for guide in guides:
        assert link in (ROOT / guide).read_text("utf-8")


def test_every_name_that_a_package_lists_has_its_entry() -> None:
    index = reference.pages()["index.md"]

    assert sum(1 for page in PAGES for _ in each(page)) > 300
    assert [entry.name for page in PAGES for entry in entries(page) if f"`{entry.name}`" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_has_a_docstring(page: Page) -> None:
    assert [
        entry.name for entry in each(page) if not entry.doc and entry.kind not in ("value", "attribute")
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_verb_raises_by_itself_is_said(page: Page) -> None:
    unsaid = [
        f"{entry.name}: {name}"
        for entry in each(page)
        for name in entry.raised
        if not said(entry) & {kind.__name__ for kind in by_name()[name].__mro__}
    ]
    assert unsaid == []


def said(entry: Entry) -> set[str]:
    return {name for names, _ in raises(entry.doc) for name in names}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_said_to_be_raised_exists(page: Page) -> None:
    known = set(by_name())
    public = {entry.name for page in PAGES for entry in entries(page)}
    unknown = [
        f"{entry.name}: {name}"
        for entry in each(page)
        for name in said(entry)
        if name not in known | BUILTIN | public
    ]
    assert unknown == []


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.md")))
def test_a_page_is_read_without_scrolling(name: str) -> None:
    text = reference.pages()[name]
    code = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$|^\|.*$|^#.*$", "", text, flags=re.MULTILINE | re.DOTALL)

    assert [line for line in prose.splitlines() if len(line) > 100 and " " in line.strip("- ")] == []
    assert code or name in ("index.md", "errors.md", "processes.md", "retention.md", "doctor.md")


# Controls: what is wrong is found.


class Spoken:
    """A class of a test."""

    def refused(self, text: str = "a", *, hard: bool = False) -> int:
        """Refuse.

        Raises:
            InvalidInput, KeyConflict: `text` is none
                of ours. UnknownJob: nor any other.
        """
        raise NotImplementedError

    async def arefused(self, text: str = "a", *, hard: bool = False) -> int:
        """`refused` for async code. It never waits."""
        raise NotImplementedError


def test_a_docstring_becomes_markdown() -> None:
    doc = (
        "One `App` and\nanother.\n\n    with app:\n        pass\n\n"
        "Raises:\n    Busy, ReadOnly: it\n        is. Also: no.\n\nEnd."
    )

    text = markdown(doc, lambda name: f"[{name}]")

    assert text == (
        "One [App] and another.\n\n```python\nwith app:\n    pass\n```\n\n"
        "Raises:\n\n- [Busy], [ReadOnly]: it is.\n- [Also]: no.\n\nEnd."
    )


def test_what_is_raised_is_read_group_by_group() -> None:
    assert list(raises(str(Spoken.refused.__doc__).replace("\n        ", "\n"))) == [
        (["InvalidInput", "KeyConflict"], "`text` is none of ours."),
        (["UnknownJob"], "nor any other."),
    ]


def test_a_verb_and_its_twin_are_one_entry() -> None:
    verbs = [entry_of(f"events.{name}", getattr(reference, name)) for name in ("write", "index")]

    assert [entry.twin for entry in pairs(verbs)] == ["", ""]
    (publishing,) = (entry for entry in entries(PAGES[1]) if entry.name == "publish")
    assert publishing.twin == "apublish" and len(publishing.signatures) == 2
