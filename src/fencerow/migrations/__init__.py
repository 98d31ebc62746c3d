"""Guarded, resumable migrations of the user's own databases, one or many. They need no tables of ours."""

from fencerow.migrations.migrator import Migrator
from fencerow.migrations.report import Outcome, Report, ShardReport

__all__ = ["Migrator", "Outcome", "Report", "ShardReport"]
