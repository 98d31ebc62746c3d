"""Whose steps can meet: what the statements of a user's actors touch, as far as their texts and the catalog tell it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fencerow.db.queries import split
from fencerow_proof.explorer.footprint import EVERYTHING, Footprint, footprint_of
from fencerow_proof.sql import ANYTHING, CALLED, HARMLESS, KEYWORDS, LOCKS, NOISE, words
from fencerow_proof.users.performer import Performer

WATCHED = "~watched"  # what every end of a transaction touches when somebody looks after each
# A snapshot that outlives its statement sees tables that were not named when it was taken.
OTHER_ISOLATION = re.compile(
    r"repeatable\s+read|serializable|transaction_isolation|\bsnapshot\b", re.IGNORECASE
)
# What they run was said elsewhere.
INDIRECT = re.compile(r"\s*(declare|fetch|move|prepare|execute|call|do|copy)\b", re.IGNORECASE)
UNDONE = re.compile(r"\s*rollback\b", re.IGNORECASE)
SYNTAX = words("over filter conflict key any all some by then when else with recursive row array")

UNTOLD = """
SELECT current_setting('default_transaction_isolation') <> 'read committed'
    OR EXISTS (
        SELECT FROM pg_proc AS proc JOIN pg_namespace AS space ON space.oid = proc.pronamespace
        WHERE space.nspname NOT IN ('pg_catalog', 'information_schema', 'fencerow')
          AND proc.proname <> 'fencerow_hold'
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = proc.oid AND deptype = 'e')
    )
    OR EXISTS (SELECT FROM pg_trigger WHERE NOT tgisinternal AND tgname <> 'fencerow_hold')
    OR EXISTS (SELECT FROM pg_rewrite WHERE rulename <> '_RETURN' AND oid >= 16384)
    OR EXISTS (SELECT FROM pg_class WHERE relrowsecurity)
"""
TABLES = """
SELECT class.oid, class.relname FROM pg_class AS class JOIN pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.relkind IN ('r', 'p') AND space.nspname NOT IN ('pg_catalog', 'information_schema')
"""
TOGETHER = """
SELECT conrelid, confrelid FROM pg_constraint WHERE contype = 'f'
UNION ALL
SELECT inhrelid, inhparent FROM pg_inherits
"""


def tables_of(run: Any) -> Mapping[str, str] | None:
    """Each table's name with the table it stands for; None when a text cannot tell what a statement does.

    Tables that refer to each other, are parts of one, or have one name in two schemas stand for each other.
    """
    if run(UNTOLD)[0][0]:
        return None
    names: dict[int, str] = dict(run(TABLES))
    stands_for = {name: name for name in names.values()}
    for one, other in run(TOGETHER):
        if one in names and other in names:
            kept, gone = stands_for[names[one]], stands_for[names[other]]
            stands_for = {name: kept if to == gone else to for name, to in stands_for.items()}
    return stands_for


class Meeting:
    """What the steps of one order touch."""

    def __init__(self, tables: Mapping[str, str] | None, *, watched: bool) -> None:
        self._tables = tables
        self._watched = watched
        self._open: dict[str, frozenset[str]] = {}  # what an actor's transaction may have written or locked
        self._answers: dict[str, int] = {}

    def touched(self, stepped: Performer, performers: Iterable[Performer]) -> Footprint | None:
        """What a step touched, with what it set free; None when nobody can tell."""
        if self._tables is None or any(
            OTHER_ISOLATION.search(text) for each in performers for text in each.said
        ):
            self._tables = None
            return None
        found = Footprint()
        for each in performers:
            if each is stepped or each.answers != self._answers.get(each.name, 0):
                found = found | self._of(each)
            self._answers[each.name] = each.answers
        return found

    def _of(self, performer: Performer) -> Footprint:
        foot = Footprint()
        for text in performer.meant:
            foot = foot | _bounded(text, self._tables or {})
        held = self._open.pop(performer.name, frozenset()) | foot.writes
        if performer.ends:
            return Footprint(foot.reads, held | ({WATCHED} if self._watched and held else frozenset()))
        self._open[performer.name] = held
        undone = any(UNDONE.match(text) for text in performer.meant)
        return Footprint(foot.reads, held) if undone else foot


def _bounded(text: str, tables: Mapping[str, str]) -> Footprint:
    """What a statement touches; everything, unless each table is known and no function of the user's is called."""
    found = Footprint()
    for part in split(text):
        bare = NOISE.sub(" ", part)
        called = (
            {name.lower() for name in CALLED.findall(bare)} - HARMLESS - KEYWORDS - SYNTAX - tables.keys()
        )
        if INDIRECT.match(bare) or any(not name.startswith("pg_advisory") for name in called):
            return EVERYTHING
        foot = footprint_of([part])
        found = found | Footprint(_stood_for(foot.reads, tables), _stood_for(foot.writes, tables))
    return found


def _stood_for(names: Iterable[str], tables: Mapping[str, str]) -> frozenset[str]:
    own = [name for name in names if not name.startswith("~")]
    others = {LOCKS} & set(names)
    return frozenset(tables.get(name.rpartition(".")[2], ANYTHING) for name in own) | others
