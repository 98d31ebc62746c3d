"""The list of wings: those below first. A new feature is a folder, and one line here."""

from __future__ import annotations

from fencerow.core.wing import Wing, build

WINGS = (
    Wing("retention", queries=("fencerow.retention",)),
    Wing("operators", queries=("fencerow.operators",)),
    Wing(
        "guards",
        queries=(
            "fencerow.guards.mutex",
            "fencerow.guards.once",
            "fencerow.guards.replace",
            "fencerow.guards.transitions",
        ),
    ),
    Wing("events", queries=("fencerow.events",)),
    Wing("migrations", queries=("fencerow.migrations.backfills",)),
)

build(WINGS)  # whoever imports anything of the package has imported this before
