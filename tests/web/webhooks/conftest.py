"""A receiver, an app whose workers deliver to it, and its database's clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencerow import App
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.events.conftest import url_of
from tests.kit.jobs import AnyEngine
from tests.web.webhooks.stage import Receiver, app_at, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def app(engine: AnyEngine, receiver: Receiver) -> Iterator[App]:
    with app_at(url_of(engine), receiver.url) as made:
        yield made


@pytest.fixture
def moved(app: App) -> Iterator[DatabaseClock]:
    """Moves the time that the app sees."""
    clock = clock_of(app.engine)
    yield clock
    clock.close()
