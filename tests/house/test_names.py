"""A class is searched for by its name: few share one, and of those that users meet no two do."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from tests.house.tree import python_files, short
from tools.public.listed import PAGES, entries, records

SHARED_MAX = 15


def classes(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The files of each class, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, text in files:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    return found


def shared(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: files for name, files in sorted(found.items()) if len(files) > 1}


def test_few_classes_share_their_name() -> None:
    files = [
        (short(path), path.read_text("utf-8"))
        for path in python_files("src")
        if short(path).startswith("src/fencerow/")
    ]

    found = shared(classes(files))

    assert len(files) > 200, "the count looked at nothing"
    assert len(found) <= SHARED_MAX, "name the new one by what it is, or rename an old one"


def test_a_shared_name_would_be_counted() -> None:
    assert shared(
        classes([("a.py", "class A: ..."), ("b.py", "class A: ..."), ("c.py", "class C: ...")])
    ) == {"A": ["a.py", "b.py"]}


def test_no_two_public_classes_share_their_name() -> None:
    """With the records that the verbs of public classes take and give."""
    found: dict[str, set[type]] = defaultdict(set)
    for page in PAGES:
        for entry in (*entries(page), *records(page)):
            if isinstance(entry.found, type):
                found[entry.found.__name__].add(entry.found)

    assert len(found) > 100, "the count looked at nothing"
    assert {name: kinds for name, kinds in found.items() if len(kinds) > 1} == {}
