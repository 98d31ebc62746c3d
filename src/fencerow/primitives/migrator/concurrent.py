"""CREATE and DROP INDEX CONCURRENTLY: how a step that a crash cut off in the middle of one goes on.

The server leaves an invalid index behind, which is dropped and made again. One that became valid although its
client was gone is adopted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.db.direct import Raw
from fencerow.db.queries import Query
from fencerow.db.statement import Steps, execute, operation
from fencerow.primitives.migrator.text import Piece

WORD = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
CREATE = re.compile(
    rf"CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?P<maybe>IF\s+NOT\s+EXISTS\s+)?(?:(?!ON\b)(?P<name>{WORD})\s+)?"
    rf"ON\s+(?:ONLY\s+)?(?P<tab>{WORD}(?:\s*\.\s*{WORD})?)",
    re.IGNORECASE,
)
DROP = re.compile(rf"DROP\s+INDEX\s+CONCURRENTLY\s+(?P<name>{WORD}(?:\s*\.\s*{WORD})?)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Marked:
    """How the statements of a step outside of a transaction are written, so that the server shows whose they are."""

    source: str
    mark: str

    def raw(self, piece: Piece) -> Raw:
        return Raw("step", {}, Query("step", (piece.text,), ()), self.source, piece.line, f"{self.mark} ")


def unnamed_index(pieces: Sequence[Piece]) -> Piece | None:
    """An index that the server would name: after a crash nobody could tell which it is."""
    return next(
        (piece for piece in pieces if (found := CREATE.match(piece.text)) and not found["name"]), None
    )


@operation(alone=True, writes="schema")
def run_piece(piece: Piece, marked: Marked, *, resumed: bool) -> Steps[bool]:
    """Run one statement outside of a transaction; false when it had been done before a crash."""
    if created := CREATE.match(piece.text):
        found = yield from execute("find_index", tab=created["tab"], name=_plain(created["name"]))
        if found:
            name, valid = found[0]
            if not valid:
                # Whoever made it is gone: no statement of that mark was under way when the step was taken over.
                yield marked.raw(Piece(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", piece.line))
            elif resumed or created["maybe"]:
                return False
    elif resumed and (dropped := DROP.match(piece.text)):
        there = yield from execute("relation_exists", name=dropped["name"])
        if not there[0][0]:
            return False
    yield marked.raw(piece)
    return True


@operation(alone=True, writes="schema")
def run_plain(piece: Piece, marked: Marked) -> Steps[bool]:
    """The same where indexes are never made beside others' work."""
    yield marked.raw(piece)
    return True


def _plain(word: str) -> str:
    """A name as the catalogue has it."""
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()
