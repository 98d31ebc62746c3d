"""Steps for databases of the user's own, one or many, and large changes of rows."""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.migrations.migrator import Migrator
    from fencerow.migrations.report import Outcome, Report, ShardReport
else:
    __getattr__ = lazily(
        __name__,
        {
            "Migrator": "fencerow.migrations.migrator",
            "Outcome": "fencerow.migrations.report",
            "Report": "fencerow.migrations.report",
            "ShardReport": "fencerow.migrations.report",
        },
    )

__all__ = ["Migrator", "Outcome", "Report", "ShardReport"]
