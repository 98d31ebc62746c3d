"""Statements are read so that no table they touch is missed."""

from __future__ import annotations

import pytest

from fencerow_proof.sql import ANYTHING, LOCKS, Kind, meaning_of, touch_alike


@pytest.mark.parametrize(
    ("text", "kind", "reads", "writes"),
    [
        ("SELECT a FROM t, public.u AS x JOIN main.v ON true", Kind.READ, {"t", "u", "v"}, set()),
        ("INSERT INTO t (a) SELECT b FROM u ON CONFLICT DO UPDATE SET a = 1", Kind.WRITE, {"u"}, {"t"}),
        ('update "Big"."T" set a = 1 from u', Kind.WRITE, {"u"}, {"Big.T"}),
        ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", Kind.WRITE, set(), {"t"}),
        ("SELECT 'FROM x' -- FROM y\nFROM t /* FROM z */", Kind.READ, {"t"}, set()),
        ("SELECT a FROM t FOR UPDATE", Kind.LOCK, set(), {"t"}),
        ("SELECT pg_advisory_xact_lock(1)", Kind.LOCK, set(), {LOCKS}),
        ("LOCK TABLE t IN SHARE MODE", Kind.LOCK, set(), {"t"}),
        ("ALTER TABLE t ADD COLUMN a int", Kind.SCHEMA, set(), {"t"}),
        ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", Kind.SCHEMA, set(), {"i", "t"}),
        ("CREATE TEMP TABLE t (a int)", Kind.SETTING, set(), set()),
        ("PRAGMA foreign_keys = ON", Kind.SETTING, set(), set()),
        ("BEGIN IMMEDIATE", Kind.BEGIN, set(), {LOCKS}),
        ("ROLLBACK TO SAVEPOINT s", Kind.BEGIN, set(), set()),
        ("COMMIT", Kind.COMMIT, set(), set()),
        ("SELECT now()", Kind.READ, set(), set()),
        ("SELECT take_stock(1)", Kind.UNKNOWN, {ANYTHING}, {ANYTHING}),
        ("CALL pay(1)", Kind.UNKNOWN, {ANYTHING}, {ANYTHING}),
        ("SELECT x FROM unnest(ARRAY[1]) AS x", Kind.READ, set(), set()),
    ],
)
def test_what_a_statement_touches(text: str, kind: Kind, reads: set[str], writes: set[str]) -> None:
    meaning = meaning_of(text)

    assert (meaning.kind, set(meaning.reads), set(meaning.writes)) == (kind, reads, writes)


def test_two_reads_may_come_in_any_order_and_an_unknown_statement_in_none() -> None:
    assert not touch_alike({"t"}, set(), {"t"}, set())
    assert touch_alike({"t"}, set(), set(), {"t"})
    assert touch_alike(set(), {"t"}, {"t"}, set())
    assert touch_alike({ANYTHING}, {ANYTHING}, {"t"}, set())
    assert not touch_alike(set(), {"t"}, set(), {"u"})
