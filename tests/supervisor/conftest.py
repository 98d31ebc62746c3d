"""A supervisor for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.test_supervisor import Parent, Start


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Parent] = []

    def begin(count: int = 2, **patience: float) -> Parent:
        made.append(Parent(count, tmp_path, **patience))
        return made[-1]

    yield begin
    for each in made:
        each.process.kill()
        each.process.wait()
        assert each.process.stdout is not None
        each.process.stdout.close()
