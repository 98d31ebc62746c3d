"""The sentences of the pages that say what a command tells: "`fencerow jobs show` says at which gate"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.house.tree import ROOT

DOCS = ROOT / "docs"
WRITTEN = {"views.md", "settings.md", "proof.md"}  # by tools, or about tests
BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
END = re.compile(r"(?<=[.;:])\s+(?=[A-Z`*\[(])")
SAYS = re.compile(
    r"`fencerow [a-z][^`]*`(?: of a job that waits|(?: and|,) `[^`]+`)* "
    r"(?:says?|shows?|names?|tells?|lists?|prints?|counts?|adds|warns|fails if|finds|"
    r"has the|has it|has those|have those|have the)\b"
)


def sentences() -> Iterator[tuple[str, str]]:
    """Each page and each of its sentences in which a command says something."""
    for path in sorted([*DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md")]):
        if path.name in WRITTEN:
            continue
        text = BLOCK.sub("", path.read_text("utf-8"))
        for part in re.split(r"\n\s*\n|\n(?=[-|#])", text):
            for sentence in END.split(" ".join(part.split())):
                if SAYS.search(sentence):
                    yield path.relative_to(DOCS).as_posix(), sentence.strip("- ")
