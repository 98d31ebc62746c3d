"""Where each file of ours lies in the site: an address follows from the path alone, and stays as long as the file."""

from __future__ import annotations

import posixpath
from functools import cache
from pathlib import Path, PurePosixPath

from tools.house.files import ROOT

RAW = frozenset({".json", ".png", ".svg", ".pdf"})  # shown by browsers as they are


@cache
def address(path: Path) -> str:
    """The address of a file or folder of the repository, from the root of the site.

    docs/ is the root: docs/guide/limits.md is guide/limits.html. The README is the first page. What lies elsewhere
    keeps its path: pages as they are called, other files below files/.
    """
    name = PurePosixPath(path.relative_to(ROOT).as_posix())
    if str(name) == "README.md":
        return "index.html"
    if str(name) == "docs/README.md":
        return "pages.html"
    inside = name.relative_to("docs") if name.parts[0] == "docs" else name
    if path.is_dir():
        return f"{inside}/index.html"
    if path.name == "README.md":
        return f"{inside.parent}/index.html"
    if path.suffix == ".md":
        return f"{inside.with_suffix('.html')}"
    if path.suffix in RAW:
        return str(inside) if name.parts[0] == "docs" else f"files/{name}"
    return f"files/{name}.html"


def source(at: str) -> str:
    """The address of the Markdown of a page."""
    return at.removesuffix(".html") + ".md"


def relative(target: str, *, seen_from: str) -> str:
    """The way from one address to another: the site works in any folder of a server, and from a disk."""
    return posixpath.relpath(target, posixpath.dirname(seen_from) or ".")


def pointed_at(link: str, *, by: Path) -> Path | None:
    """The file that a link of a page names, or None if it leads out of the repository."""
    if ":" in link or link.startswith("//"):
        return None
    return (by.parent / link).resolve() if link else by
