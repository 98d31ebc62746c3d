"""What a worker loads: `fencerow worker -A examples.probes.service:app`."""

from __future__ import annotations

from examples.probes import checks
from examples.probes.base import app

__all__ = ["app", "checks"]
