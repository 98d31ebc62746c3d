"""docs/guide/safe-handlers.md as data: each rule's title and its two twins, with what they say they end in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.house.tree import ROOT

PAGE = ROOT / "docs" / "guide" / "safe-handlers.md"
_RULE = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
_TWIN = re.compile(r"^```python\n# (wrong|right) \((.+)\)\n((?s:.+?))^```", re.MULTILINE)


@dataclass(frozen=True)
class Twin:
    """A block of code of the page, and the end that its first line names."""

    kind: str
    end: str
    code: str


@dataclass(frozen=True)
class Rule:
    """One section of the page."""

    number: int
    title: str
    twins: dict[str, Twin]


def rules() -> list[Rule]:
    """The rules in the order of the page."""
    text = PAGE.read_text("utf-8")
    heads = list(_RULE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [text.index("\n## Which guard")]
    return [
        Rule(int(head[1]), head[2], _twins(text[head.end() : end]))
        for head, end in zip(heads, ends, strict=True)
    ]


def _twins(section: str) -> dict[str, Twin]:
    return {found[1]: Twin(found[1], found[2], found[3]) for found in _TWIN.finditer(section)}
