"""What our pages name is there: pages, their parts, files, and tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.house.files import ROOT, pages, short, text_of

LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(r"`((?:src|tests|docs|tools|examples|bench|\.ci)/[\w./-]*\w)(?:::(\w+))?")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def faults() -> Iterator[str]:
    for page in pages():
        yield from (f"{short(page)}: {fault}" for fault in _links(page))
        if not short(page).startswith("docs/evidence/"):
            yield from (f"{short(page)}: {fault}" for fault in _named(page))


def _links(page: Path) -> Iterator[str]:
    for target, part in LINK.findall(text_of(page)):
        there = (page.parent / target if target else page).resolve()
        if not there.exists():
            yield f"its link to {target} leads nowhere (of docs/reference/: run .venv/bin/python -m tools.reference)"
        elif part and part not in _parts(there):
            yield f"its link to {target}#{part} leads to no part of that page"


def _named(page: Path) -> Iterator[str]:
    for name, test in NAMED.findall(text_of(page)):
        path = ROOT / name
        if not path.exists():
            yield f"names {name}, which is not there"
        elif test and f"def {test}(" not in text_of(path):
            yield f"names {name}::{test}, which is not there: name another test that shows it, or nothing"


@cache
def _parts(page: Path) -> frozenset[str]:
    """What a link may name: anchors, and headings as they are turned into anchors by the usual sites."""
    if page.suffix != ".md":
        return frozenset()
    text = text_of(page)
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", CODE.sub("", text))
    slugs = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", words, re.MULTILINE)
    }
    return frozenset(slugs | set(re.findall(r"<a id=\"([^\"]+)\"></a>", text)))
