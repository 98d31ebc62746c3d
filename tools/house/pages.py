"""Pages that a tool writes are what it writes now."""

from __future__ import annotations

from collections.abc import Iterator

from tools import life_of_a_job, openapi
from tools import reference as reference_pages
from tools import settings as settings_page
from tools.house.files import ROOT, text_of

PRINTED = {
    "docs/life-of-a-job.md": (life_of_a_job.page, "python -m tools.life_of_a_job > docs/life-of-a-job.md"),
    "docs/settings.md": (settings_page.page, "python -m tools.settings > docs/settings.md"),
}
REFERENCE = "python -m tools.reference"


def faults() -> Iterator[str]:
    for name, (page, again) in PRINTED.items():
        if text_of(ROOT / name) != page():
            yield f"{name}: is not what its tool prints now: run .venv/bin/{again}"
    if openapi.PAGE.read_bytes() != openapi.page():
        yield "docs/reference/openapi.json: is not what the gateway says now: run .venv/bin/python -m tools.openapi"
    yield from _reference()


def _reference() -> Iterator[str]:
    made = reference_pages.pages()
    standing = {path.name: text_of(path) for path in reference_pages.FOLDER.glob("*.md")}
    for name in sorted(made.keys() | standing.keys()):
        if made.get(name) != standing.get(name):
            yield f"docs/reference/{name}: is not what its tool writes now: run .venv/bin/{REFERENCE}"
