"""What is wrong with a built site: links that lead nowhere, and what asks another host or needs a weaker policy."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

COLOURS = re.compile(
    r'</?span(?: class="[a-z0-9]+")?>'
)  # of words in code: most of a page, and nothing to check
LOADED = frozenset({"img", "script", "source", "link", "iframe", "video", "audio", "embed", "object", "form"})


class Seen(HTMLParser):
    """The anchors of a page, its links, what it loads, and what a strict policy would not let it do."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.wrong: list[str] = []
        self.titles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.titles += tag == "h1"
        if "id" in given:
            self.anchors.append(given["id"])
        for name in ("href", "src", "srcset"):
            if name in given:
                self._leads(tag, given[name])
        if "style" in given or tag == "style" or any(name.startswith("on") for name in given):
            self.wrong.append(f"<{tag}> has a style or a script of its own, which its policy forbids")
        if tag == "script" and "src" not in given:
            self.wrong.append("a script stands in the page, which its policy forbids")
        if tag == "img" and not given.get("alt"):
            self.wrong.append(f"the picture {given.get('src')} has no alt text")

    def _leads(self, tag: str, to: str) -> None:
        if ":" not in to and not to.startswith("//"):
            self.links.append(to)
        elif tag in LOADED:
            self.wrong.append(f"<{tag}> asks another host: {to}")
        elif not to.startswith(("https://", "http://", "mailto:")):
            self.wrong.append(f"its link to {to} is none that a browser follows")


def faults(folder: Path) -> Iterator[str]:
    """Each thing that is wrong, with the page."""
    seen = {page.relative_to(folder).as_posix(): _read(page) for page in sorted(folder.rglob("*.html"))}
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    for at, page in seen.items():
        yield from (f"{at}: {fault}" for fault in page.wrong)
        yield from (
            f"{at}: two parts have the anchor {name}"
            for name in set(page.anchors)
            if page.anchors.count(name) > 1
        )
        if page.titles != 1:
            yield f"{at}: has {page.titles} titles (#), and must have one"
        for link in page.links:
            target, _, part = link.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(at), target)) if target else at
            if there not in files:
                yield f"{at}: its link to {link} leads nowhere"
            elif part and part not in seen[there].anchors:
                yield f"{at}: its link to {link} leads to no part of that page"


def _read(page: Path) -> Seen:
    seen = Seen()
    seen.feed(COLOURS.sub("", page.read_text("utf-8")))
    return seen
