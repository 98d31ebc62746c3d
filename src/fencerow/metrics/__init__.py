"""Metrics for Prometheus: what this process counts of its own work, and what it sees of the database.

The guide: docs/guide/metrics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.metrics.page import Metrics as Metrics

__all__ = ["Metrics"]

__getattr__ = lazily(__name__, {"Metrics": "fencerow.metrics.page"})
