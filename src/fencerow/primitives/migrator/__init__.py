"""Guarded, resumable migrations of the user's own databases, one or many. They need no tables of ours."""

from fencerow.primitives.migrator.migrator import Migrator
from fencerow.primitives.migrator.report import Outcome, Report, ShardReport

__all__ = ["Migrator", "Outcome", "Report", "ShardReport"]
