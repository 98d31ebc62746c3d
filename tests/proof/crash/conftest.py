"""The same arenas as the races have."""

from __future__ import annotations

from tests.proof.race.conftest import arenas, race_server  # noqa: F401 (fixtures)
