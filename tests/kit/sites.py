"""Where a chore works that a test runs without a worker."""

from __future__ import annotations

from typing import Any

from fencerow import Config
from fencerow.core.chore import Site
from fencerow.core.telemetry import Telemetry
from fencerow.db.due import OWN
from fencerow.db.engine import Engine


async def _no_slots() -> None:
    pass


def site_of(engine: Engine, **changes: Any) -> Site:
    """A site that serves no queue, has no slots and tells nobody; `changes` are fields of it."""
    site: dict[str, Any] = {
        "config": Config(),
        "telemetry": Telemetry(),
        "worker": "w",
        "queues": tuple,
        "due": lambda: OWN,
        "announce": lambda queued: None,
        "now_us": lambda: None,
        "taking": _no_slots,
    }
    return Site(engine, **{**site, **changes})
