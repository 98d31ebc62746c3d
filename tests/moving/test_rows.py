"""All rows of all tables arrive as they were."""

from __future__ import annotations

from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.moving.tables import made_tables, staying
from tests.moving.conftest import mover
from tests.moving.rows import ROWS


def test_each_table_of_each_wing_moves_or_its_wing_says_why_not() -> None:
    """A new table is red here until somebody has said with a row what becomes of it, or why it stays."""
    assert set(made_tables()) - set(staying()) == set(ROWS)


def test_every_row_arrives_and_its_checksum_is_the_same(full: SqliteEngine, other: PostgresEngine) -> None:
    report = mover(full, other).move(wait_s=0)

    assert report.state == "moved"
    assert {name: each.rows for name, each in report.tables.items()} == dict.fromkeys(ROWS, 1)
