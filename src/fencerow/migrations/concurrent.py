"""CREATE and DROP INDEX CONCURRENTLY: how a migration that a crash cut off in the middle of one goes on.

The server leaves an invalid index behind, which is dropped and made again. One that became valid although its
client was gone is adopted, if it is what the file says: its name alone proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.db.queries import Query
from fencerow.db.run import Steps, execute, operation
from fencerow.migrations.direct import Raw
from fencerow.migrations.errors import MigrationFailed
from fencerow.migrations.text import Piece

WORD = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
CREATE = re.compile(
    rf"CREATE\s+(?P<unique>UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?P<maybe>IF\s+NOT\s+EXISTS\s+)?(?:(?!ON\b)(?P<name>{WORD})\s+)?"
    rf"ON\s+(?:ONLY\s+)?(?P<tab>{WORD}(?:\s*\.\s*{WORD})?)",
    re.IGNORECASE,
)
DROP = re.compile(rf"DROP\s+INDEX\s+CONCURRENTLY\s+(?P<name>{WORD}(?:\s*\.\s*{WORD})?)\s*$", re.IGNORECASE)

SHAPE = "pg_temp.fencerow_shape"


@dataclass(frozen=True, slots=True)
class Marked:
    """How the statements of a migration outside of a transaction are written, which tells the server whose they are."""

    source: str
    mark: str

    def raw(self, piece: Piece) -> Raw:
        return Raw(
            "migration",
            {},
            Query("migration", (piece.text,), ()),
            source=self.source,
            line=piece.line,
            prefix=f"{self.mark} ",
        )


def unnamed_index(pieces: Sequence[Piece]) -> Piece | None:
    """An index that the server would name: after a crash nobody could tell which it is."""
    return next(
        (piece for piece in pieces if (found := CREATE.match(piece.text)) and not found["name"]), None
    )


@operation(writes="schema")
def refuse_another(piece: Piece, marked: Marked) -> Steps[bool]:
    """Before an index is adopted by its name: is it what the file says? Always true; run before `run_piece`.

    The server itself says what the statement means: it makes the same index on an empty copy of the table, which ends
    with this transaction.

    Raises:
        MigrationFailed: an index of that name is there with another definition. Nothing was changed.
    """
    created = CREATE.match(piece.text)
    if created is None or created["maybe"]:  # IF NOT EXISTS says by itself that the name is enough
        return True
    name = _plain(created["name"])
    found = yield from execute("find_index", tab=created["tab"], name=name)
    if not found or not found[0][1]:
        return True
    rest = piece.text[created.end() :]
    alike = f"CREATE {created['unique'] or ''}INDEX {created['name']} ON {SHAPE}{rest}"
    yield marked.raw(
        Piece(f"CREATE TEMPORARY TABLE fencerow_shape (LIKE {created['tab']}) ON COMMIT DROP", piece.line)
    )
    yield marked.raw(Piece(alike, piece.line))
    wanted = yield from execute("find_index", tab=SHAPE, name=name)
    if wanted[0][2] != found[0][2]:
        raise MigrationFailed(
            f"{marked.source}, line {piece.line}: there is an index {found[0][0]}, and it is another one",
            f"the file means {wanted[0][2]}, the database has {found[0][2]}",
            "drop it, or give the new one another name; others made it, or the file was edited since",
        )
    return True


@operation(alone=True, writes="schema")
def run_piece(piece: Piece, marked: Marked, *, resumed: bool) -> Steps[bool]:
    """Run one statement outside of a transaction; false when it had been done before a crash."""
    if created := CREATE.match(piece.text):
        found = yield from execute("find_index", tab=created["tab"], name=_plain(created["name"]))
        if found:
            name, valid, _ = found[0]
            if not valid:
                # Whoever made it is gone: no statement of that mark was under way when the migration was taken over.
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
