"""A worker is killed at each place of an order and of its compensation: all is undone, in reverse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.events.conftest import url_of
from tests.kit.jobs import AnyEngine
from tests.saga.kills import play


@pytest.mark.prove
def test_an_order_is_undone_wherever_its_worker_dies(engine: AnyEngine, tmp_path: Path) -> None:
    assert play(url_of(engine), tmp_path) == []
