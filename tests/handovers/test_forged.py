"""Handovers that our own code never writes: the other lines of their receiver go on."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from fencerow import Config
from fencerow.db.sqlite import SqliteEngine
from fencerow.handovers.checks import examine_handovers
from fencerow.handovers.looking import listed
from tests.core.store.stage import rows
from tests.handovers.stage import end, ids, line, receiver
from tests.kit.jobs import AnyEngine


@pytest.mark.parametrize("column", ["lined_at", "ended_at", "held_until", "attempt"])
def test_a_text_for_a_number_in_a_file_stops_no_other_line(lite: SqliteEngine, column: str) -> None:
    (forged,), (healthy,) = line(lite, 1, key="a"), line(lite, 1, key="b")
    end(lite, forged, healthy)
    rows(lite, f"UPDATE {{handovers}} SET {column} = 'no number' WHERE job_id = '{forged}'")

    assert ids(receiver(lite).take(9)) == [forged, healthy]
    assert len(lite.run(listed(limit=9))) == 2
    list(examine_handovers(lite, Config()))


def test_a_token_that_no_take_could_raise_is_refused(engine: AnyEngine) -> None:
    line(engine, 1)

    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.CheckViolation)):
        rows(engine, f"UPDATE {{handovers}} SET token = {2**63 - 1}")
