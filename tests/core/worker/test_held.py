"""A claimed job that something keeps from starting for a while goes back to its queue, and spends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fencerow.core.model.outcome import Released
from fencerow.core.model.state import State
from fencerow.core.telemetry import Fact
from fencerow.core.worker import brought
from fencerow.operators import looking
from tests.core.worker.stage import read, working
from tests.kit.jobs import AnyEngine

HEADERS = '{"not-before":"1"}'
DELAY_S = 5000.0


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], int]]:
    """Holds jobs that have the header; tells by which headers it was asked, and at which times."""
    asked: list[tuple[list[str], int]] = []

    def hold(headers: Mapping[str, str], now_us: int) -> Released | None:
        asked.append((list(headers), now_us))
        return Released("not now", DELAY_S) if "not-before" in headers else None

    monkeypatch.setattr(brought, "_brought", replace(brought.brought(), hold=hold))
    return asked


async def test_a_held_job_goes_back_and_spends_nothing(
    engine: AnyEngine, held: list[tuple[list[str], int]]
) -> None:
    ran = []

    def note(word: str) -> None:
        ran.append(word)

    async with working(engine, note) as stage:
        kept = await stage.submit("note", {"word": "held"}, headers=HEADERS)
        await stage.heard.wait(Fact.RELEASED, job_id=kept)
        await stage.run("note", {"word": "free"})
        await stage.run("note", {"word": "other header"}, headers='{"trace":"1"}')

    job = await read(engine, kept)
    released = [each for each in await engine.arun(looking.events(kept)) if each.kind == "released"]
    assert ran == ["free", "other header"]
    assert (job.state, job.failures, job.snoozes, job.crashes, job.suspect) == (State.QUEUED, 0, 0, 0, False)
    assert len(released) == 1 and "not now" in str(released[0].detail)
    assert abs(job.run_at_us - held[0][1] - DELAY_S * 1e6) < 60e6  # by the database's time, not the host's
    others = [names for names, _ in held if names != ["not-before"]]
    assert others == [["trace"]]  # nobody asked about the job without headers
