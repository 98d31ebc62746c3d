"""Schedules as rows, without an app: for what the operations themselves must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.schedules import definitions
from fencerow.schedules.definition import Definition
from fencerow.schedules.definitions import RowKind, WantedRow, wanted_row
from tests.kit.jobs import AnyEngine, new_job

MINUTE_US = 60_000_000


def definition(**changes: Any) -> Definition:
    """Every minute, one job in queue mail."""
    spec = changes.pop("spec", {"interval_s": 60})
    return Definition(**{"spec": spec, "work": new_job(id="-"), **changes})


def wanted(
    name: str = "report", entity: str = "", kind: RowKind = RowKind.SINGLE, **changes: Any
) -> WantedRow:
    return wanted_row(name, entity, kind, definition(**changes))


@pytest.fixture
def put(engine: AnyEngine) -> Callable[..., WantedRow]:
    """Make a person's schedule."""

    def make(name: str = "report", entity: str = "", **changes: Any) -> WantedRow:
        made = wanted(name, entity, **changes)
        engine.run(definitions.put_one(made, actor="ada", take_over=True))
        return made

    return make
