"""The parts of a JSON array or object without decoding them: one that no decoder can read must not hide the others.

A decoder descends into what it reads and gives up where it is nested too deeply. This looks at brackets and strings
only, so depth means nothing to it. It trusts that the text is JSON: it comes from the database, which has checked that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Strings come first, so that a bracket or a comma inside one is left alone.
MARK = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]', re.DOTALL)


def elements(array: str) -> list[str]:
    """The elements of an array, as they are written."""
    return [text for text in _between(array, ",") if text]


def fields(document: str) -> dict[str, str]:
    """The fields of an object: the name as it is written, with its quotes, and the value."""
    return dict(map(_divided, elements(document)))


def _divided(field: str) -> tuple[str, str]:
    name = MARK.match(field)
    assert name is not None, "a field begins with its name"
    return name.group(0), field[name.end() :].lstrip().removeprefix(":").strip()


def _between(text: str, mark: str) -> Iterator[str]:
    """What stands between the marks that lie directly inside the outermost brackets."""
    depth, start = 0, 0
    for match in MARK.finditer(text):
        found = match.group(0)
        if found in "[{":
            depth += 1
            start = match.end() if depth == 1 else start
        elif found in "]}":
            depth -= 1
            if depth == 0:
                yield text[start : match.start()].strip()
        elif found == mark and depth == 1:
            yield text[start : match.start()].strip()
            start = match.end()
