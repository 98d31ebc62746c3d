"""Two pages that claim things, and the page that names the tests behind each claim, as data to compare."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.house.tree import ROOT

COLUMNS = ("the page says", "tests")
PROOFS = re.compile(r"`((?:tests/|\.ci/)[^`\s]+)`")


@dataclass(frozen=True)
class Row:
    """Some words of a claim, and the tests that show it."""

    words: str
    proofs: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """What the page of proofs says of one claim."""

    title: str
    rows: tuple[Row, ...]


def plain(text: str) -> str:
    """Words alone, as a reader sees them: no marks, no links, one space between two words."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}\S.*$|^\s*(- |\d+\. )|^#.*$|<a id=\"[^\"]*\"></a>", "", text, flags=re.MULTILINE)
    text = re.sub(r"\((\[(guide|security)\]\([^)]*\))\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"\*|`|\\(?=\|)", "", text).split())


def sentences(text: str) -> list[str]:
    """The sentences of a text that is plain already."""
    return [each for each in re.split(r"(?<=[.!?])\s+(?=[A-Z\"])", text) if each]


def promises(page: str) -> dict[str, str]:
    """The claims of docs/guarantees.md by their anchors: the text from one anchor to the next, or to a heading."""
    pieces = re.split(r"(?:^- |^\d+\. )<a id=\"([^\"]+)\"></a>|^#.*$", page, flags=re.MULTILINE)
    found = [(name, text) for name, text in zip(pieces[1::2], pieces[2::2], strict=True) if name]
    names = [name for name, _ in found]
    assert len(set(names)) == len(names), "each anchor stands once"
    return {name: plain(text) for name, text in found}


def readme_claims(page: str) -> dict[str, str]:
    """The claims of the README by their first words: what it says in prose, by chapters, and its bullets."""
    claims = {"Fencerow": plain(page.split("\n## ", 1)[0])}
    for name in ("Two commands", "Why"):
        prose = re.sub(r"^- \*\*.*?(?=^- |^$)", "", chapter(page, name), flags=re.MULTILINE | re.DOTALL)
        claims[name] = f"{name}. {plain(prose)}"
    for name in ("Why", "What you get"):
        for bullet in re.findall(
            r"^- (\*\*.*?)(?=^- |^$)", chapter(page, name) + "\n", re.MULTILINE | re.DOTALL
        ):
            words = plain(bullet)
            claims[plain(bullet[: bullet.index("**", 2)])] = words
    return claims


def chapter(page: str, name: str) -> str:
    found = re.search(rf"^## {name}\n(.+?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"no chapter {name!r}"
    return found[1]


def sections(page: str) -> dict[str, Section]:
    """The page of proofs: for each heading of the third level its rows. Those of promises go by their anchor."""
    found: dict[str, Section] = {}
    parts = re.split(r"^### \[(.+?)\]\(([^)#]+)(?:#([^)]*))?\)$", page, flags=re.MULTILINE)
    for title, target, anchor, text in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True):
        name = anchor if target == "guarantees.md" else title
        assert name not in found, f"{name} has two sections"
        found[name] = Section(plain(title), tuple(rows(text)))
    return found


def rows(text: str) -> list[Row]:
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.startswith("|") and tuple(cells) != COLUMNS and not set(line) <= set("|-"):
            words, tests = cells
            found.append(Row(plain(words), tuple(PROOFS.findall(tests))))
    return found


def faults(claims: Mapping[str, str], proof: Mapping[str, Section]) -> list[str]:
    """What does not fit: claims without a section, sentences without a row, words and tests that are not there."""
    found = [f"{name}: the page of proofs does not have it" for name in claims.keys() - proof.keys()]
    found += [f"{name}: no page claims it" for name in proof.keys() - claims.keys()]
    for name in claims.keys() & proof.keys():
        found += [f"{name}: {each}" for each in unfit(claims[name], proof[name])]
    return sorted(found)


def unfit(claim: str, section: Section) -> list[str]:
    found = [] if section.rows else ["no row"]
    quoted = [section.title, *(row.words for row in section.rows)]
    found += [f"{words!r} does not stand there" for words in quoted if words not in claim]
    found += [
        f"no row for {each!r}" for each in sentences(claim) if not any(words in each for words in quoted)
    ]
    for row in section.rows:
        found += [] if row.proofs else [f"{row.words!r} names no test"]
        found += [f"{proof} is not there" for proof in row.proofs if not is_there(proof)]
    return found


def is_there(proof: str) -> bool:
    """A function of a file of tests, such a file, a folder with one, or a program as a whole."""
    name, _, function = proof.partition("::")
    path = ROOT / name
    if function:
        return path.is_file() and function in functions(path)
    return path.is_file() or any(path.rglob("test_*.py"))


@cache
def functions(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
