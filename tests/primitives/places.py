"""A place for primitives on an engine of a test's own."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.db.engine import Engine


@dataclass
class At:
    """A place whose tables are there."""

    engine: Engine

    def check_or_create(self) -> None:
        pass
