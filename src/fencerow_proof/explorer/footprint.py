"""What a step touches: two steps of different actors that touch nothing in common may change places.

Read from the text of a statement, as `fencerow check` does, and rather too much than too little: what is not understood
touches everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from fencerow_proof.sql import (
    ADVISORY,
    ANYTHING,
    LOCKS,
    NOISE,
    ROW_LOCK,
    Kind,
    meaning_of,
    touch_alike,
)

CLOCK = "~clock"  # what every step reads and `later` moves
# What these tell depends on every transaction there is.
ON_TRANSACTIONS = re.compile(
    r"snapshot|\bxmin\b|\bpg_xact|\btxid|\bxact_id|\bpg_locks\b|\bpg_stat", re.IGNORECASE
)
ON_CONFLICT = re.compile(r"\bDO\s+UPDATE\b", re.IGNORECASE)
LOCK_TABLE = re.compile(r"^\s*LOCK\b", re.IGNORECASE)
# Ours, that read the clock and change its form; whatever else is called may do anything.
OURS = re.compile(r'"?\w+"?\."?(?:now|us|at|seconds|later)"?\(|\bfencerow_now\(')
VIEW = "all_jobs"  # over both tables of jobs
UNDER_VIEW = ("jobs", "finished_jobs")


class Footprint(NamedTuple):
    """The tables that a step reads, and those that it changes or locks."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other: Footprint) -> Footprint:
        return Footprint(self.reads | other.reads, self.writes | other.writes)

    def meets(self, other: Footprint) -> bool:
        """Whether it can matter which of the two is first."""
        return touch_alike(set(self.reads), set(self.writes), set(other.reads), set(other.writes))

    @property
    def looking(self) -> Footprint:
        """The same of a step that only looked."""
        return Footprint(self.reads | self.writes)


NOTHING = Footprint(frozenset({CLOCK}))
EVERYTHING = Footprint(frozenset({ANYTHING}), frozenset({ANYTHING}))


def footprint_of(texts: Iterable[str]) -> Footprint:
    """What the statements of one query touch."""
    found = NOTHING
    for text in texts:
        found = found | _footprint(text)
    return found


@lru_cache(maxsize=4096)
def keeps_locks(texts: tuple[str, ...]) -> bool:
    """Whether it may lock rows that it does not change: those it selects for that, and those of a conflict."""
    bare = NOISE.sub(" ", " ".join(texts))
    return any(found.search(bare) for found in (ROW_LOCK, ADVISORY, ON_CONFLICT, LOCK_TABLE))


@lru_cache(maxsize=4096)
def takes_advisory(texts: tuple[str, ...]) -> bool:
    """Whether it takes a lock that is no row's."""
    return ADVISORY.search(" ".join(texts)) is not None


@lru_cache(maxsize=4096)
def _footprint(text: str) -> Footprint:
    meaning = meaning_of(OURS.sub("now(", text))
    if meaning.kind in (Kind.SCHEMA, Kind.UNKNOWN):
        return EVERYTHING
    reads, writes = set(_tables(meaning.reads)), set(_tables(meaning.writes))
    bare = NOISE.sub(" ", text)
    if ROW_LOCK.search(bare):
        writes |= reads
    if ADVISORY.search(bare):
        writes.add(LOCKS)
    if ON_TRANSACTIONS.search(bare):
        reads.add(ANYTHING)
    return Footprint(frozenset(reads), frozenset(writes))


def _tables(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        if name.endswith(VIEW):
            yield from (name.removesuffix(VIEW) + table for table in UNDER_VIEW)
        else:
            yield name
