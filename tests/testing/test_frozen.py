"""Where a test has frozen Python's clock, `drain` ends all the same, and `adrain` says what to write."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from fencerow import App
from fencerow.errors import DrainUnfinished, InvalidInput
from fencerow.testing import adrain, drain


class FrozenLoop(asyncio.SelectorEventLoop):
    """What freezegun makes of asyncio's loop."""

    def time(self) -> float:
        return 1000.0


@pytest.fixture
def app(migrated_path: Path) -> App:
    made = App(f"sqlite:///{migrated_path}")

    @made.job(name="add")
    def add(a: int) -> int:
        return a + 1

    @made.job(name="hang")
    async def hang() -> None:
        await asyncio.get_running_loop().create_future()

    return made


def test_it_runs_what_is_due_and_keeps_its_time_limit(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    app.submit_by_name("add", {"a": 1})
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)  # as freezegun does it

    assert [each.result for each in drain(app)] == [2]
    app.submit_by_name("hang")
    with pytest.raises(DrainUnfinished, match=r"after 0\.3 s"):
        drain(app, timeout_s=0.3)


def test_in_a_loop_for_which_no_time_passes_it_is_refused(app: App) -> None:
    with (
        asyncio.Runner(loop_factory=FrozenLoop) as runner,
        pytest.raises(InvalidInput, match="real_asyncio=True"),
    ):
        runner.run(adrain(app))
    app.close()
