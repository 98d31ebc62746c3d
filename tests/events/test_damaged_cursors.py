"""A place in the log that is no number is refused by a SQLite file: it would stop all partitions of its group."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from fencerow.db.sqlite import SqliteEngine
from fencerow.events.outbox import NewEvent, append
from tests.events.test_without_workers import group_of, read


@pytest.mark.parametrize("column", ["part", "cursor", "fence", "careful", "trying", "tries"])
@pytest.mark.parametrize("value", ["many", b"\x80", 1.5])
def test_what_is_no_number_is_refused_and_the_group_reads_on(
    lite: SqliteEngine, column: str, value: object
) -> None:
    lease = group_of(lite)
    lite.run(append([NewEvent("t", 1)]))

    with (
        closing(sqlite3.connect(lite.path, isolation_level=None)) as stranger,
        pytest.raises(sqlite3.IntegrityError, match="whole_numbers"),
    ):
        stranger.execute(f"UPDATE fencerow_event_cursors SET {column} = ?", (value,))

    assert [each.data for each in read(lite, lease).events] == ["1"]
