"""Migrations for databases of the user's own, one or many, and large changes of rows.

The guide: docs/guide/migrations.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.migrations.backfills.backfill import Backfill
    from fencerow.migrations.backfills.status import BackfillStatus
    from fencerow.migrations.migrator import Migrator
    from fencerow.migrations.report import Outcome, Report, ShardReport
else:
    __getattr__ = lazily(
        __name__,
        {
            "Migrator": "fencerow.migrations.migrator",
            "Backfill": "fencerow.migrations.backfills.backfill",
            "BackfillStatus": "fencerow.migrations.backfills.status",
            "Outcome": "fencerow.migrations.report",
            "Report": "fencerow.migrations.report",
            "ShardReport": "fencerow.migrations.report",
        },
    )

__all__ = [
    "Migrator",
    "Backfill",
    "BackfillStatus",
    "Outcome",
    "Report",
    "ShardReport",
]
