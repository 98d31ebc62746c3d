"""Reading a user's SQL without running it: where its statements end, and which of them end a transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN = re.compile(
    r"""--[^\n]*|/\*|(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?:[A-Za-z_]\w*)?\$|;|\w+""",
    re.DOTALL,
)
COMMENT_EDGE = re.compile(r"/\*|\*/")
NO_TRANSACTION = re.compile(r"^(?:--|#) migrate: no transaction\b.*$", re.MULTILINE)
# What would end the transaction that holds the migration and its ledger row together. ROLLBACK TO a savepoint may stay.
ENDING = re.compile(
    r"(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|PREPARE\s+TRANSACTION|ROLLBACK(?!\s+(?:WORK\s+|TRANSACTION\s+)?TO))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a file: its text as written, without what comes before it, and the line it begins in."""

    text: str
    line: int


def pieces(text: str, dialect: str) -> list[Piece]:
    """The statements of a script. Strings, comments, dollar quotes, and bodies with semicolons stay whole."""
    found, start = [], 0
    for end in [*_ends(text, dialect), len(text)]:
        begin = _first_word(text, start, end)
        if begin is not None:
            found.append(Piece(text[begin:end].strip(), text.count("\n", 0, begin) + 1))
        start = end + 1
    return found


def ending_piece(found: list[Piece]) -> Piece | None:
    """The first statement that would end or begin a transaction, if any does."""
    return next((piece for piece in found if ENDING.match(piece.text)), None)


def _ends(text: str, dialect: str) -> Iterator[int]:
    """Where each statement's semicolon stands."""
    start, depth, before = 0, 0, ""
    for word, position in _tokens(text, dialect):
        if word == ";":
            if depth == 0 and (dialect != "sqlite" or sqlite3.complete_statement(text[start : position + 1])):
                yield position
                start = position + 1
        elif dialect == "postgres":
            depth += _deeper(before, word.upper(), depth)
            before = word.upper()


def _deeper(before: str, word: str, depth: int) -> int:
    """A function's body in plain SQL is BEGIN ATOMIC … END, and a CASE … END may stand in it."""
    if before == "BEGIN" and word == "ATOMIC":
        return 1
    if depth and word == "CASE":
        return 1
    return -1 if depth and word == "END" else 0


def _tokens(text: str, dialect: str) -> Iterator[tuple[str, int]]:
    """The words and semicolons outside of comments and quotes."""
    position = 0
    while match := TOKEN.search(text, position):
        found, position = match.group(0), match.end()
        if found == "/*":
            position = _after_comment(text, position, nested=dialect == "postgres")
        elif found.startswith("$") and dialect == "postgres":
            close = text.find(found, position)
            position = len(text) if close < 0 else close + len(found)
        elif found == ";" or found[0].isalnum() or found[0] == "_":
            yield found, match.start()


def _after_comment(text: str, position: int, *, nested: bool) -> int:
    depth = 1
    while depth and (edge := COMMENT_EDGE.search(text, position)):
        depth += -1 if edge.group(0) == "*/" else int(nested)
        position = edge.end()
    return len(text) if depth else position


def _first_word(text: str, start: int, end: int) -> int | None:
    """Where a statement begins behind blanks and comments; None if there is nothing but those."""
    position = start
    while position < end:
        if text[position].isspace():
            position += 1
        elif text.startswith("--", position):
            line_end = text.find("\n", position)
            position = end if line_end < 0 else line_end
        elif text.startswith("/*", position):
            position = _after_comment(text, position + 2, nested=True)
        else:
            return position
    return None
