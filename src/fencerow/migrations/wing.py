"""Migrations and backfills of users' databases, as the core is told of them."""

from __future__ import annotations

from fencerow.core.wing import Wing

WING = Wing("migrations", queries=("fencerow.migrations.backfills",))
