"""Every import of ours in the examples of the pages is one that works."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module

import tests.django.project  # noqa: F401 (what is below fencerow.django is imported where Django has settings)
from tests.house.tree import ROOT

BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
IMPORT = re.compile(r"^ *from (?:fencerow|pytest_fencerow)[\w.]* import (?:\([^)]*\)|[^\n#]*)", re.MULTILINE)


def imported() -> Iterator[tuple[str, str, str]]:
    """Each page with a package and a name that an example of it imports from there."""
    pages = [
        ROOT / "README.md",
        *(path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts),
    ]
    for path in pages:
        for block in BLOCK.finditer(path.read_text("utf-8")):
            for line in IMPORT.findall(block[2]):
                for node in ast.parse(textwrap.dedent(line)).body:
                    assert isinstance(node, ast.ImportFrom) and node.module
                    yield from ((path.name, node.module, each.name) for each in node.names)


def test_every_import_of_the_pages_works() -> None:
    found = list(imported())

    assert [each for each in found if not hasattr(import_module(each[1]), each[2])] == []
    assert {"README.md", "http-client.md", "events.md"} <= {page for page, _, _ in found}
