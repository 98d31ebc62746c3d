"""The reference's index says from which package each public name is imported: all of them are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from tests.house.tree import ROOT

PACKAGE = re.compile(r"## \[([\w.]+)\]|From `([\w.]+)`:")
NAMES = re.compile(r"\| \[`(\w+)`\]\([^)]*\)(?:, `(\w+)`)? \|")
NOWHERE = "Given by an object, imported from nowhere:"


def claimed() -> Iterator[tuple[str, str]]:
    """Each package and name that the index claims."""
    package = ""
    for line in (ROOT / "docs" / "reference" / "index.md").read_text("utf-8").splitlines():
        if said := PACKAGE.match(line):
            package = said[1] or said[2]
        elif line == NOWHERE:
            package = ""
        elif package and (names := NAMES.match(line)):
            yield from ((package, name) for name in names.groups() if name)


def test_every_name_is_imported_from_the_package_that_the_index_says() -> None:
    untrue = [f"{package}.{name}" for package, name in claimed() if not hasattr(import_module(package), name)]

    assert not untrue
    assert {("fencerow", "App"), ("fencerow.app", "HandoverTo"), ("fencerow.events", "apublish")} <= set(
        claimed()
    )
