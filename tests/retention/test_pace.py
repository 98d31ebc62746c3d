"""What no index finds is removed as fast as it comes, and what stays costs little."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from fencerow import Config
from fencerow.core.store import store
from fencerow.core.telemetry import Telemetry
from fencerow.db import removal
from fencerow.db.removal import Looked, RemovalInRounds
from fencerow.db.run import Steps, operation
from fencerow.handovers import wing as handovers
from fencerow.limits import wing as limits
from fencerow.retention.maintenance import MaintenanceChore
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import wing as turns
from fencerow.unique import wing as unique
from tests.core.store.stage import rows, table
from tests.handovers.stage import end, line, receiver
from tests.kit.jobs import AnyEngine
from tests.unique.test_submitting import asked

DAY_S = 86_400.0
MANY = 7


async def test_one_round_removes_all_that_may_go(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (unique, "LOOKED_AT"),
        (handovers, "LOOKED_AT"),
        (limits, "STATES"),
        (turns, "GATES"),
    ):
        monkeypatch.setattr(module, name, 2)
    await stale(engine)
    clock.advance(9 * DAY_S)
    live = asked(unique="live")
    engine.run(store.submit_asked([live]))

    await MaintenanceChore(engine, Config(), Telemetry()).round()

    kinds = ("unique_jobs", "handovers", "gates", "limit_states")
    left = {kind: rows(engine, f"SELECT count(*) AS n FROM {table(engine, kind)}")[0]["n"] for kind in kinds}
    assert left == {"unique_jobs": 1, "handovers": 0, "gates": 0, "limit_states": 0}


async def stale(engine: AnyEngine) -> None:
    """Rows of each kind whose jobs are gone, or at which nobody waits."""
    bot, ids = receiver(engine), line(engine, MANY)
    end(engine, *ids, how="cancel")
    for each in ids:
        await bot.aconfirm(each)
    unique = [asked(unique=f"u{n}") for n in range(MANY)]
    engine.run(store.submit_asked(unique))
    end(engine, *(each.job.id for each in unique), how="cancel")
    engine.run(store.delete([*ids, *(each.job.id for each in unique)]))
    for n in range(MANY):
        rows(engine, f"INSERT INTO {table(engine, 'gates')} (name) VALUES ('key:{n}')")
        state = f"INSERT INTO {table(engine, 'limit_states')} (name, state, changed_at) VALUES ('ip/{n}', '{{{{}}}}', "
        rows(engine, state + ("fencerow.now())" if engine.dialect == "postgres" else "1)"))


class Table:
    """Rows in an order, of which a look takes one; and a clock that moves a tenth of a second with each."""

    def __init__(self, goes: list[bool]) -> None:
        self.goes, self.looks = goes, 0

    async def arun(self, asked: Any) -> Looked[int]:
        place = asked.start().send(None)
        self.looks += 1
        return Looked((place + 1) % len(self.goes), 1, int(self.goes[place]))

    def monotonic(self) -> float:
        return self.looks * 0.1


@operation()
def look(after: int, *, limit: int) -> Steps[Any]:
    yield after  # type: ignore[misc]  # the table above stands for the engine


@pytest.mark.parametrize(
    ("goes", "looks", "gone"),
    [
        ([True] * 50, 50, 50),  # all that may go
        ([False] * 50, 5, 0),  # half a second among what stays
        ([True] * 20 + [False] * 50, 25, 20),
        ([False] * 3, 3, 0),  # to the last row at most
    ],
)
async def test_a_round_goes_on_for_as_long_as_it_removes_much(
    goes: list[bool], looks: int, gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Table(goes)
    monkeypatch.setattr(removal, "time", stand)

    async def no_pause(_seconds: float) -> None: ...

    monkeypatch.setattr("fencerow.db.removal.asyncio.sleep", no_pause)
    assert await RemovalInRounds(stand, partial(look, limit=1), 0).round() == gone  # type: ignore[arg-type]
    assert stand.looks == looks
