"""Doctor's look at moves: a database that was left behind looks whole, and one that is being filled looks empty."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, fail, info, warn
from fencerow.db.engine import Engine
from fencerow.moving.source import read_moves


def examine_moves(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Where the jobs of this database went, or came from."""
    for move in engine.run(read_moves()):
        other = move.other
        match move.state:
            case "moved":
                yield fail(
                    "moves",
                    f"the jobs were moved to {other}; nothing runs here any more",
                    "use that database",
                )
            case "draining" | "closed":
                yield warn(
                    "moves",
                    f"the jobs are being moved to {other}; no job is begun here ({move.state})",
                    "run `fencerow move` again if nobody does it just now, or take it back with --reopen",
                )
            case "filling":
                yield warn(
                    "moves",
                    f"the jobs of {other} are being moved here; nothing can be submitted until all have come",
                    "run `fencerow move` again if nobody does it just now, or take it back with --reopen",
                )
            case _:
                yield info("moves", f"the jobs came from {other}")
