"""Builds the site into a folder: each listed page, and each file to which a page leads, as far as that goes."""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tools.house.files import ROOT, text_of
from tools.site import llms
from tools.site.addresses import RAW, address, relative, source
from tools.site.listed import LIST, Entry, listed, sections
from tools.site.rendering import Heading, Page, coloured, rendered

HERE = Path(__file__).parent
HOME = ROOT / "README.md"
ICON = ROOT / "src" / "fencerow" / "web" / "dashboard" / "static" / "icon.svg"
STATIC = (HERE / "site.css", HERE / "site.js", ICON)
PICTURES = ROOT / "docs" / "pictures"
UNSEARCHED = ("docs/decisions/", "CHANGELOG.md", "docs/proof.md", "docs/races.md", "files/")
LANGUAGES = {
    ".py": "python",
    ".sql": "sql",
    ".toml": "toml",
    ".sh": "sh",
    ".js": "js",
    ".go": "go",
    ".yaml": "yaml",
}


def build(folder: Path, *, colours: bool = True) -> list[Page]:
    """Write the whole site into `folder`, which must be empty or missing."""
    pages = list(_reached(colours))
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    order = [HOME, *(entry.path for entry in listed())]
    for page in pages:
        if page.path.suffix in RAW:
            _written(folder / address(page.path), page.path.read_bytes())
        else:
            _written(folder / address(page.path), template.render(**_seen(page, order)).encode())
        if page.path.suffix == ".md":
            at = source(address(page.path))
            _written(folder / at, llms.moved(page.path, text_of(page.path), as_seen_from=at).encode())
    for file in STATIC:
        _written(folder / file.name, file.read_bytes())
    shutil.copytree(PICTURES, folder / "pictures", dirs_exist_ok=True)
    _written(
        folder / "search.js",
        f"window.fencerowPages={json.dumps(list(_found(pages)), ensure_ascii=False)}".encode(),
    )
    _written(folder / "llms.txt", llms.page(llms.in_site).encode())
    _written(folder / "llms-full.txt", llms.full().encode())
    return pages


def _reached(colours: bool) -> Iterator[Page]:
    """Each page of the list, and what they lead to. Each once."""
    waiting = [HOME, LIST, *(entry.path for entry in listed())]
    seen = set(waiting)
    while waiting:
        path = waiting.pop(0)
        page = _made(path, colours)
        yield page
        for other in sorted(page.leads_to - seen):
            if other.exists():
                seen.add(other)
                waiting.append(other)


def _made(path: Path, colours: bool) -> Page:
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".md":
        return rendered(path, text_of(path), colours=colours)
    if path.suffix in RAW:
        return Page(path)
    return _file(path, colours)


def _folder(path: Path) -> Page:
    """A folder as a page: what lies in it."""
    name = path.relative_to(ROOT).as_posix()
    inside = sorted(each for each in path.iterdir() if each.is_file() and each.suffix not in (".pyc",))
    lines = [f"# {path.name.capitalize() if name.startswith('docs/') else name}", ""]
    for each in inside:
        title = text_of(each).partition("\n")[0].lstrip("# ") if each.suffix == ".md" else f"`{each.name}`"
        lines.append(f"- [{title}]({each.name})")
    page = rendered(path / "README.md", "\n".join(lines))  # its links are seen from within
    page.path = path
    return page


def _file(path: Path, colours: bool) -> Page:
    """A file of the repository as a page, in colours."""
    name = path.relative_to(ROOT).as_posix()
    code = coloured(text_of(path), LANGUAGES.get(path.suffix, ""), colours=colours)
    title = html.escape(name)
    page = Page(path, f'<h1 id="file">{title}</h1>\n<pre tabindex="0"><code>{code}</code></pre>\n')
    page.headings = [Heading(1, "file", name)]
    page.texts = [""]
    return page


def _seen(page: Page, order: list[Path]) -> dict[str, Any]:
    """What the template needs for a page."""
    at = address(page.path)
    place = order.index(page.path) if page.path in order else None
    titles: dict[Path, str] = {HOME: "Fencerow"} | {entry.path: entry.title for entry in listed()}

    def link(path: Path | None) -> dict[str, str] | None:
        return None if path is None else {"at": relative(address(path), seen_from=at), "title": titles[path]}

    return {
        "body": page.body,
        "title": page.title,
        "home": page.path == HOME,
        "root": relative(".", seen_from=at),
        "markdown": relative(source(at), seen_from=at) if page.path.suffix == ".md" else None,
        "parts": [heading for heading in page.headings if heading.level in (2, 3)],
        "sections": [_in_navigation(title.title, title.entries, page.path, at) for title in sections()],
        "before": link(order[place - 1]) if place else None,
        "after": link(order[place + 1]) if place is not None and place + 1 < len(order) else None,
    }


def _in_navigation(title: str, entries: tuple[Entry, ...], here: Path, at: str) -> dict[str, Any]:
    return {
        "title": title,
        "open": any(_holds(entry.path, here) for entry in entries),
        "entries": [
            {
                "title": entry.title,
                "at": relative(address(entry.path), seen_from=at),
                "current": "page" if entry.path == here else "true" if _holds(entry.path, here) else "",
            }
            for entry in entries
        ],
    }


def _holds(entry: Path, here: Path) -> bool:
    """Whether a page is the entry's, or one of those that stand below it: of its folder, if the entry is its index."""
    if entry == here:
        return True
    folder = entry if entry.is_dir() else entry.parent if entry.name in ("index.md", "README.md") else None
    return folder is not None and folder != ROOT and folder in here.parents


def _found(pages: list[Page]) -> Iterator[list[str]]:
    """For the search: each part of each page, as address, page, heading and words."""
    for page in pages:
        at = address(page.path)
        if page.path.suffix != ".md" or page.path.relative_to(ROOT).as_posix().startswith(UNSEARCHED):
            continue
        for heading, text in zip(page.headings, page.texts, strict=True):
            where = at if heading.level == 1 else f"{at}#{heading.anchor}"
            yield [where, page.title, heading.text, " ".join(text.split())]


def _written(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
