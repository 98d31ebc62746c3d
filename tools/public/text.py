"""Docstrings as Markdown: paragraphs for 100 columns, code in fences, what is raised as a list, names as links."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

WIDTH = 98
LINKED = re.compile(r"(?<![`\[])`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
ITEM = re.compile(r"^(?:- |\d+\. )")
ERRORS = re.compile(r"^([A-Z]\w+(?:, [A-Z]\w+)*): ")
NEXT_ERRORS = re.compile(r"(?<=[.;]) (?=[A-Z]\w+(?:, [A-Z]\w+)*: )")

Link = Callable[[str], str]  # from a name to a link to it, or to the name alone


def markdown(doc: str, link: Link) -> str:
    """The docstring for a page. `link` says where a name in backticks leads."""
    return "\n\n".join(_block(lines, link) for lines in _blocks(doc))


def raises(doc: str) -> Iterator[tuple[list[str], str]]:
    """The errors that a docstring says it raises: each group of names, with what it says of them."""
    for lines in _blocks(doc):
        if lines[0] == "Raises:":
            for text in _entries(lines[1:]):
                names = ERRORS.match(text)
                yield (names[1].split(", "), text[names.end() :]) if names else ([], text)


def first_sentence(doc: str) -> str:
    """What a table says of a name."""
    words = " ".join(doc.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", words)[0]


def wrapped(text: str, indent: str = "") -> str:
    """One paragraph at the width of a page; no line begins in a way that Markdown would take for something else."""
    lines = textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(
        re.sub(r"^( *)([-+#>]|\d+\.)(?= )", r"\1\\\2", line) if at else line for at, line in enumerate(lines)
    )


def _blocks(doc: str) -> Iterator[list[str]]:
    """Paragraphs, code, lists, what is raised: parts between blank lines, but code and lists of several stay whole."""
    part: list[str] = []
    for line in doc.splitlines():
        deep = line.startswith("    ")
        if part and (not line.strip()) and not _is_open(part):
            yield part
            part = []
        elif part and _is_open(part) and line.strip() and not deep:
            yield _stripped(part)
            part = [line]
        elif line.strip() or part:
            part.append(line)
    if part:
        yield _stripped(part)


def _is_open(part: list[str]) -> bool:
    return part[0].startswith("    ") or part[0] == "Raises:"


def _stripped(part: list[str]) -> list[str]:
    while part and not part[-1].strip():
        part.pop()
    return part


def _block(lines: list[str], link: Link) -> str:
    if lines[0] == "Raises:":
        return _raises(lines[1:], link)
    if lines[0].startswith("    "):
        return "\n".join(["```python", *textwrap.dedent("\n".join(lines)).splitlines(), "```"])
    if ITEM.match(lines[0]):
        return "\n".join(wrapped(_linked(item, link), "  ") for item in _items(lines))
    return _paragraph(lines, link)


def _paragraph(lines: list[str], link: Link) -> str:
    at = next((number for number, line in enumerate(lines) if ITEM.match(line)), len(lines))
    text = wrapped(_linked(" ".join(lines[:at]), link))
    return text if at == len(lines) else f"{text}\n\n{_block(lines[at:], link)}"


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if ITEM.match(line):
            items.append(line)
        else:
            items[-1] += f" {line.strip()}"
    return items


def _raises(lines: list[str], link: Link) -> str:
    shown = ["Raises:", ""]
    for text in _entries(lines):
        names = ERRORS.match(text)
        told = ", ".join(link(name) for name in names[1].split(", ")) if names else ""
        rest = _linked(text[names.end() :] if names else text, link)
        shown.append(wrapped(f"- {told}: {rest}" if told else f"- {rest}", "  "))
    return "\n".join(shown)


def _entries(lines: list[str]) -> Iterator[str]:
    """One text for each entry below `Raises:`; deeper lines go on with the one before."""
    entries: list[str] = []
    for line in lines:
        if line.startswith("     ") and entries:
            entries[-1] += f" {line.strip()}"
        elif line.strip():
            entries.append(line.strip())
    for entry in entries:
        yield from NEXT_ERRORS.split(entry)


def _linked(text: str, link: Link) -> str:
    return LINKED.sub(lambda match: link(match[1]) if "()" not in match[0] else match[0], text)
