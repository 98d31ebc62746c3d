"""What each model stands for, and what it was when a person last read both side by side.

Nothing can compare a model with a statement. So the header of each model names the statements and the parts of Python
that it stands for, and a digest of each lies in beside.json. When one of them changes, a test says which model is to be
read again; then its digest is printed anew: python -m tests.models.beside
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fencerow.core.store.tables import postgres_queries
from tests.models.spin import MODELS

SOURCE = Path(__file__).parents[2] / "src" / "fencerow"
KEPT = MODELS / "beside.json"
COMMENT = re.compile(r"--[^\n]*")
REMARK = re.compile(r"(^|\s)#\s.*")
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def digests(model: str) -> dict[str, str]:
    """Of each name in the header of a model: a digest of what it is now, without comments, docstrings and layout."""
    header = (MODELS / f"{model}.pml").read_text("utf-8").split("Of what:", 1)[1].split("\n *\n", 1)[0]
    known = _statements() | _python(re.findall(r"[\w/]+\.py", header))
    names = re.findall(r"`([\w.]+)`", header)
    return {name: hashlib.sha256(known[name].encode()).hexdigest()[:16] for name in names}


def _statements() -> dict[str, str]:
    return {
        name: " ".join(COMMENT.sub("", "\n;\n".join(query.statements)).split())
        for name, query in postgres_queries().items()
    }


def _python(files: Iterable[str]) -> dict[str, str]:
    """Each function and class at the top of these files, and each method as Class.method."""
    found: dict[str, str] = {}
    for file in files:
        text = (SOURCE / file).read_text("utf-8")
        lines = text.splitlines()
        for name, node in _defined(ast.parse(text)):
            found[name] = _plain(lines, node)
    return found


def _defined(module: ast.Module) -> Iterator[tuple[str, Definition]]:
    for node in module.body:
        if isinstance(node, Definition):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, Definition)
            )


def _plain(lines: Sequence[str], node: Definition) -> str:
    """Its lines, and not what the parser makes of them, which differs between releases of Python."""
    prose = {
        number
        for each in ast.walk(node)
        if isinstance(each, Definition) and ast.get_docstring(each) is not None
        for number in range(each.body[0].lineno, (each.body[0].end_lineno or 0) + 1)
    }
    kept = (
        lines[number - 1] for number in range(node.lineno, (node.end_lineno or 0) + 1) if number not in prose
    )
    return " ".join(" ".join(REMARK.sub("", line) for line in kept).split())


def main() -> None:
    """Say that every model was read beside what it stands for, as it is now."""
    found = {path.stem: digests(path.stem) for path in sorted(MODELS.glob("*.pml"))}
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
