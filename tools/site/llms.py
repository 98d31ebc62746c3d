"""llms.txt, in the format of llmstxt.org: what the documentation has, for programs that read it.

The list is that of docs/README.md.

.venv/bin/python -m tools.site.llms > llms.txt    # the file at the root of the repository; the site makes its own
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.house.files import ROOT, short, text_of
from tools.site.addresses import address, pointed_at, relative, source
from tools.site.listed import Section, sections

PAGE = ROOT / "llms.txt"
SKIPPED = (
    "How it is built"  # a reader with little room may leave it out: the format calls such a part Optional
)
FENCE = re.compile(r"(^```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
NOTES = """\
It needs Python 3.11 or newer, and PostgreSQL 15 or newer or a SQLite file. Each verb has a sync and an async form:
`submit` and `asubmit`. Errors have codes such as FR-203; the page of errors says what to do about each. A handler may
run more than once: read the page on safe handlers before you write one."""


def page(named: Callable[[Path], str] = short) -> str:
    """The file with links as `named` makes them: paths of the repository, or addresses of the site."""
    parts = [f"# Fencerow\n\n> {summary()}\n\n{NOTES}\n"]
    parts += [_part(section, named) for section in sections()]
    return "\n".join(parts)


def summary() -> str:
    """What it is, as the README's first paragraph says it."""
    first = text_of(ROOT / "README.md").split("\n\n")[1]
    return " ".join(first.replace("**", "").split())


def _part(section: Section, named: Callable[[Path], str]) -> str:
    title = "Optional" if section.title == SKIPPED else section.title
    lines = [f"- [{entry.title}]({named(entry.path)}): {entry.note}" for entry in section.entries]
    return "\n".join([f"## {title}", "", *lines, ""])


def in_site(path: Path) -> str:
    """A page's Markdown in the site."""
    at = address(path)
    return at if path.is_dir() else source(at)


def full() -> str:
    """All pages one after the other, but those that a reader with little room may leave out."""
    pages = [
        moved(entry.path, text_of(entry.path), as_seen_from="llms-full.txt")
        for section in sections()
        for entry in section.entries
        if section.title != SKIPPED and entry.path.suffix == ".md"
    ]
    return "\n\n".join([f"# Fencerow\n\n> {summary()}\n\n{NOTES}", *pages])


def moved(path: Path, text: str, *, as_seen_from: str) -> str:
    """The Markdown of a page with its links led to where things lie in the site."""

    def there(found: re.Match[str]) -> str:
        target = pointed_at(found[1], by=path)
        if target is None or not target.exists():
            return found[0]
        at = in_site(target) if target.suffix == ".md" else address(target)
        return f"]({relative(at, seen_from=as_seen_from)}{found[2] or ''})"

    return "".join(part if part.startswith("```") else LINK.sub(there, part) for part in FENCE.split(text))


def faults() -> Iterator[str]:
    """Whether the file at the root is what this makes now."""
    if not PAGE.exists() or text_of(PAGE) != page():
        yield "llms.txt: is not what its tool prints now: run .venv/bin/python -m tools.site.llms > llms.txt"


if __name__ == "__main__":
    sys.stdout.write(page())
