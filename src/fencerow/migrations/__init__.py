"""Steps for databases of the user's own, one or many, and large changes of rows."""

from fencerow.migrations.migrator import Migrator
from fencerow.migrations.report import Outcome, Report, ShardReport

__all__ = ["Migrator", "Outcome", "Report", "ShardReport"]
