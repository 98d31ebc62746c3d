"""The declared tables, made in a fresh database of each engine."""

from __future__ import annotations

import pytest

from fencerow.guards.transitions import Moves, Transitions
from tests.guards.transitions.tables import AtEngine, create, extractions
from tests.kit.jobs import AnyEngine


@pytest.fixture
def table(engine: AnyEngine) -> str:
    return create(engine)


@pytest.fixture
def documents(engine: AnyEngine, table: str) -> Transitions:
    return extractions(AtEngine(engine), table)


@pytest.fixture
def boxes(documents: Transitions) -> Moves:
    return documents.sub("boxes")
