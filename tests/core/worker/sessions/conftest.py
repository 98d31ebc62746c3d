"""A user of each kind, whose pool must be whole again when the test is over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.core.worker.sessions.users import KINDS, Kind, Users
from tests.kit.jobs import AnyEngine


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def jobs(kind: Kind, request: pytest.FixtureRequest) -> AnyEngine:
    """The engine of the jobs, of the kind's dialect."""
    made: AnyEngine = request.getfixturevalue("lite" if kind.dialect == "sqlite" else "pg")
    return made


@pytest.fixture
async def users(kind: Kind, jobs: AnyEngine) -> AsyncIterator[Users]:
    made = Users(kind, jobs)
    yield made
    left = made.checked_out
    await made.close()
    assert left == 0, "a connection did not come back to the user's pool"
