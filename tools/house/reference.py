"""Every public name says what it does and what it raises, and its package and its guide name each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from tools.house.files import ROOT, short, text_of
from tools.public.errors import by_name
from tools.public.listed import PAGES, Page, entries, records
from tools.public.names import Entry
from tools.public.text import raises

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
NEEDS_NO_DOCSTRING = ("value", "attribute")


def faults() -> Iterator[str]:
    known = BUILTIN | set(by_name()) | {entry.name for page in PAGES for entry in entries(page)}
    for page in PAGES:
        yield from _guides(page)
        for entry in _each(page):
            yield from (f"{entry.source}: {entry.name}: {fault}" for fault in _unsaid(entry, known))


def _each(page: Page) -> Iterator[Entry]:
    """Names of a page and what they have; records have nothing to say of their fields."""
    for entry in (*entries(page), *records(page)):
        yield entry
        yield from entry.members


def _unsaid(entry: Entry, known: set[str]) -> Iterator[str]:
    if not entry.doc and entry.kind not in NEEDS_NO_DOCSTRING:
        yield "give it a docstring"
    said = {name for names, _ in raises(entry.doc) for name in names}
    for name in entry.raised:
        if not said & {kind.__name__ for kind in by_name()[name].__mro__}:
            yield f"it raises {name}: say so under `Raises:` in its docstring"
    for name in sorted(said - known):
        yield f"its docstring says that it raises {name}, which does not exist"


def _guides(page: Page) -> Iterator[str]:
    package = import_module(page.package)
    where = short(ROOT / str(package.__file__))
    guides = re.findall(r"docs/[\w/-]+\.md", package.__doc__ or "")
    link = "reference/index.md" if page is PAGES[0] else f"reference/{page.name}.md"
    if not guides:
        yield f"{where}: end its docstring with `The guide: docs/….md.`"
    for guide in guides:
        if not (ROOT / guide).is_file():
            yield f"{where}: its docstring names {guide}, which is not there"
        elif link not in text_of(ROOT / guide):
            yield f"{guide}: link to {link}, which leads back to it"
