"""The loop that gives free turns: what its sweep finds, and when."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fencerow.core.store import store
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.db.run import Operation
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.turns import hander, looks
from fencerow.turns.looks import TurnsWanted
from tests.core.store.stage import rows
from tests.kit.jobs import AnyEngine, new_job
from tests.kit.sites import site_of

ARRIVALS = {"postgres": "fencerow.gate_arrivals", "sqlite": "fencerow_gate_arrivals"}


async def test_a_sweep_that_had_to_wait_does_not_put_off_the_next(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger locks the file, or the server does not answer, while a part of the sweep is under way."""
    now = [1000.0]

    def monotonic() -> float:
        now[0] += 10.0  # between any two looks at the clock, so also while a part is under way
        return now[0]

    monkeypatch.setattr(hander, "time", SimpleNamespace(monotonic=monotonic))
    looks = hander.Hander(site_of(engine))
    for key in ("a", "b"):
        made = new_job(exclusive=key)
        await engine.arun(store.submit_gated([made]))
        rows(engine, f"DELETE FROM {ARRIVALS[engine.dialect]}")
        await looks.tick()
        found = await engine.arun(store.read([made.id]))
        assert found[made.id].state == "queued", f"of the key {key}"
        now[0] += 15.0


async def test_only_turns_of_which_nothing_told_count_as_swept(engine: AnyEngine) -> None:
    told: list[dict[str, object]] = []
    telemetry = Telemetry()
    telemetry.listen(lambda name, facts: told.append(dict(facts)) if name == Fact.TURNS_SWEPT else None)
    looks = hander.Hander(site_of(engine, telemetry=telemetry))
    await engine.arun(store.submit_gated([new_job(exclusive="told")]))
    await looks.tick()
    assert told == []

    await engine.arun(store.submit_gated([made := new_job(exclusive="lost")]))
    rows(engine, f"DELETE FROM {ARRIVALS[engine.dialect]}")
    looks._sweep_at = 0.0
    looks._swept = ""
    await looks.tick()

    assert told == [{"queue": made.template.queue, "count": 1}]


async def test_arrivals_that_do_not_end_put_off_no_part_of_a_sweep_but_the_first(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(hander, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("fencerow.turns.looks.SWEPT_MAX", 1)
    lost = [new_job(exclusive=key) for key in ("a", "b", "c")]
    await engine.arun(store.submit_gated(lost))
    rows(engine, f"DELETE FROM {ARRIVALS[engine.dialect]}")
    looks = hander.Hander(site_of(engine))
    now[0] += hander.SWEEP_S_MIN

    for _part in lost:
        await engine.arun(store.submit_gated([new_job(exclusive="told")]))
        await looks.tick()

    found = await engine.arun(store.read([job.id for job in lost]))
    assert {job.state for job in found.values()} == {"queued"}


async def test_a_look_that_gave_all_it_may_is_followed_by_one_that_asks_nobody(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("turns.gates", "turns.handing", "limits.named"):
        monkeypatch.setattr(f"fencerow.{place}.ROOM_MAX", 1)
    asked: list[int] = []
    wanted = looks.turns_wanted

    def counted(after: int = 0) -> Operation[TurnsWanted]:
        asked.append(after)
        return wanted(after)

    monkeypatch.setattr(looks, "turns_wanted", counted)
    await engine.arun(define(Limit("a", at_once=2), actor=None, reason=None))
    made = [new_job(limits=("a",)) for _ in range(2)]
    await engine.arun(store.submit_gated(made))
    gives = hander.Hander(site_of(engine))
    gives._sweep_at = float("inf")

    assert await gives.tick() == 0.0, "there is more"
    if engine.dialect == "postgres":  # a file does not tell whether somebody needed one
        assert gives._beside == 0, "nobody needed another gate: none is looked for"
    await gives.tick()

    found = await engine.arun(store.read([job.id for job in made]))
    assert {job.state for job in found.values()} == {"queued"}
    assert len(asked) == 1
