"""A place for primitives on an engine of a test's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from fencerow import Config
from fencerow.db.engine import Engine


@dataclass
class At:
    """A place whose tables are there."""

    engine: Engine
    config: Config = field(default_factory=Config)

    def check_or_create(self) -> None:
        pass
