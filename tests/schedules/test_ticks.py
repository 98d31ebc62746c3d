"""What is due fires once: policies for what was missed, for what overlaps, and what a worker cannot compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fencerow import Client
from fencerow.core.model import rules
from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.db.run import Steps, operation
from fencerow.errors import OlderWorkers
from fencerow.limits import Limit
from fencerow.limits.errors import UnknownLimit
from fencerow.schedules import definitions, ticking
from fencerow.schedules.definition import ENTITY_HEADER, FIRE_HEADER, NAME_HEADER, Overlap
from fencerow.schedules.definitions import StandingRow
from fencerow.schedules.misfire import Misfire
from fencerow.schedules.ticking import Made, Tick
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine, new_job, register

Put = Callable[..., Any]
MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US


@pytest.fixture(autouse=True)
def _right_after_the_hour(engine: AnyEngine, clock: DatabaseClock) -> None:
    """So a test knows how many fires come until when, and how late each is."""
    clock.advance((HOUR_US - engine.run(store.clock()) % HOUR_US) / 1e6 + 1.0)


def fired(engine: AnyEngine) -> list[NewJob]:
    return engine.run(ticking.tick()).jobs


def ticks(engine: AnyEngine, name: str = "report", entity: str | None = None) -> list[Tick]:
    return engine.run(ticking.read_ticks(name, entity, 1000))[::-1]


def next_us(engine: AnyEngine, name: str = "report", entity: str = "") -> int:
    (row,) = engine.run(_locked(name, entity))
    assert row.next_us is not None
    return row.next_us


@operation()
def _locked(name: str, entity: str) -> Steps[list[StandingRow]]:
    return (yield from definitions.locked(name, entity))


def test_a_fire_makes_one_job_that_knows_its_schedule(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put("report", "ada", spec={"interval_s": 60})
    due_us = next_us(engine, entity="ada")

    assert fired(engine) == []
    clock.advance(60)
    (job,) = fired(engine)
    assert fired(engine) == []

    stored = engine.run(store.read([job.id])).get(job.id)
    assert stored is not None and stored.headers is not None
    assert stored.headers[NAME_HEADER] == "report" and stored.headers[ENTITY_HEADER] == "ada"
    assert stored.headers[FIRE_HEADER].endswith("+00:00")
    assert [(each.fire_us, each.made, each.job_id) for each in ticks(engine)] == [(due_us, Made.JOB, job.id)]
    assert next_us(engine, entity="ada") == due_us + MINUTE_US


@pytest.mark.parametrize(
    ("misfire", "late", "jobs", "left_out"),
    [(Misfire.ONE, 600, 1, 9), (Misfire.SKIP, 600, 1, 9), (Misfire.ALL, 600, 4, 0)],
)
def test_missed_fires_follow_the_policy(
    engine: AnyEngine, clock: DatabaseClock, put: Put, misfire: Misfire, late: float, jobs: int, left_out: int
) -> None:
    put(misfire=misfire, catchup_max=4, overlap=Overlap.ALLOW, late_s=59.0)
    first_us = next_us(engine)

    clock.advance(late)
    made = fired(engine)

    assert len(made) == jobs
    found = ticks(engine)
    assert sum(each.left_out for each in found) == left_out
    if misfire is Misfire.ALL:
        assert [each.fire_us for each in found] == [first_us + MINUTE_US * number for number in range(4)]
        assert next_us(engine) == first_us + 4 * MINUTE_US
        assert len(fired(engine)) == 4  # the rest, pass by pass
    else:
        assert next_us(engine) > first_us + 9 * MINUTE_US - 1


def test_a_fire_that_is_too_late_to_make_leaves_a_tick_without_a_job(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(misfire=Misfire.SKIP, late_s=0.0, spec={"interval_s": 3600})
    clock.advance(3700)

    assert fired(engine) == []

    (tick,) = ticks(engine)
    assert (tick.made, tick.job_id, tick.left_out) == (Made.LATE, None, 0)


def test_no_job_is_made_while_an_earlier_one_has_not_ended(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(overlap=Overlap.SKIP)
    clock.advance(60)
    (first,) = fired(engine)

    clock.advance(60)
    assert fired(engine) == []
    engine.run(store.cancel(first.id, actor=None, reason=None))
    clock.advance(60)
    (second,) = fired(engine)

    assert [each.made for each in ticks(engine)] == [Made.JOB, Made.OVERLAP, Made.JOB]
    assert second.id != first.id


def test_jobs_may_overlap_where_that_is_allowed(engine: AnyEngine, clock: DatabaseClock, put: Put) -> None:
    put(overlap=Overlap.ALLOW)
    clock.advance(60)
    fired(engine)
    clock.advance(60)

    assert len(fired(engine)) == 1


def test_what_a_worker_cannot_compute_keeps_nobody_else_waiting(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put("broken", spec={"interval_s": 60})
    put("sound", spec={"interval_s": 60})
    _spoil(engine, "broken")
    clock.advance(120)

    ticked = engine.run(ticking.tick())
    engine.run(ticking.note_troubles(ticked.troubles))

    assert [job.template.submitted_by for job in ticked.jobs] == ["schedule sound"]
    assert list(ticked.troubles) == [("broken", "")]
    assert engine.run(ticking.tick()).rows == 1
    assert engine.run(ticking.tick(besides=ticked.troubles)).rows == 0
    due_us, now_us = engine.run(ticking.next_fire(besides=ticked.troubles))
    assert due_us is not None and due_us > now_us


NEEDS: list[dict[str, Any]] = [
    {"work": new_job(id="-", exclusive="ada")},
    {"work": new_job(id="-", limits=("github",))},
    {"overlap": Overlap.QUEUE},
]


@pytest.mark.parametrize("needing", NEEDS, ids=["exclusive", "limits", "queued"])
def test_a_rule_that_a_living_worker_does_not_know_keeps_the_fire_back_until_it_is_gone(
    engine: AnyEngine,
    clock: DatabaseClock,
    put: Put,
    needing: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "KNOWN", ("exclusive", "limits"))
    Client(engine).limits.define(Limit("github", at_once=1))
    put("report", spec={"interval_s": 3600}, **needing)
    put("sound", spec={"interval_s": 3600})
    due_us = next_us(engine)
    register(engine, lease_s=3700)
    clock.advance(3600)

    ticked = engine.run(ticking.tick())
    engine.run(ticking.note_troubles(ticked.refused))
    assert [job.template.submitted_by for job in ticked.jobs] == ["schedule sound"]
    assert list(ticked.refused) == [("report", "")]
    with pytest.raises(OlderWorkers):
        Client(engine).schedules.run("report")
    assert next_us(engine) == due_us and ticks(engine) == []
    assert "FR-609: a living worker does not know" in str(Client(engine).schedules.get("report").trouble)

    clock.advance(101)
    assert [job.template.submitted_by for job in fired(engine)] == ["schedule report"]
    assert [each.fire_us for each in ticks(engine)] == [due_us]
    assert Client(engine).schedules.get("report").trouble is None


def test_a_limit_that_somebody_removed_keeps_the_fires_of_no_other_schedule(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    limits = Client(engine).limits
    with pytest.raises(UnknownLimit):
        put("report", work=new_job(id="-", limits=("github",)))
    limits.define(Limit("github", at_once=1))
    put("report", work=new_job(id="-", limits=("github",)))
    put("sound")
    limits.remove("github")
    clock.advance(60)

    ticked = engine.run(ticking.tick())

    assert [job.template.submitted_by for job in ticked.jobs] == ["schedule sound"]
    assert ticked.refused[("report", "")].startswith("FR-791: the job names the limit github")
    limits.define(Limit("github", at_once=1))
    assert len(fired(engine)) == 1


def _spoil(engine: AnyEngine, name: str) -> None:
    from fencerow.db.run import Statement, operation

    @operation()
    def spoil() -> Any:
        text = msgspec.json.encode({"of": "a newer Fencerow"}).decode()
        yield Statement("spoil_schedule", {"name": name, "definition": text}, _query(engine))

    engine.run(spoil())


def _query(engine: AnyEngine) -> Any:
    return engine.queries.composed(
        "spoil_schedule", "UPDATE fencerow.schedules SET definition = :definition WHERE name = :name"
    )


def test_a_clock_that_goes_back_and_forth_fires_nothing_twice(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(overlap=Overlap.ALLOW)
    clock.advance(60)
    assert len(fired(engine)) == 1

    clock.advance(-60)
    assert fired(engine) == []
    clock.advance(60)
    assert fired(engine) == []
    clock.advance(60)
    assert len(fired(engine)) == 1


def test_a_pause_keeps_it_from_firing_and_what_it_missed_is_not_made_up(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(misfire=Misfire.ALL, overlap=Overlap.ALLOW)
    assert engine.run(definitions.pause("report", None, actor="ada", reason="moving")) == (1, 1)
    assert engine.run(definitions.pause("report", None, actor="bob", reason="later")) == (0, 1)

    clock.advance(600)
    assert fired(engine) == []
    assert engine.run(definitions.resume("report", None)) == (1, 1)
    assert fired(engine) == []
    clock.advance(60)

    assert len(fired(engine)) == 1


def test_a_changed_one_keeps_its_pause_and_what_is_overdue(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put()
    overdue_us = next_us(engine)
    clock.advance(90)
    engine.run(definitions.pause("report", None, actor="ada", reason=None))

    put(spec={"interval_s": 3600})

    assert fired(engine) == []
    assert next_us(engine) == overdue_us


def test_old_ticks_are_forgotten_but_for_those_that_still_guard(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(overlap=Overlap.ALLOW)
    clock.advance(60)
    (job,) = fired(engine)
    engine.run(store.cancel(job.id, actor="ada"))
    clock.advance(3600)
    fired(engine)

    assert engine.run(ticking.purge_ticks(age_s=1800, limit=10)) == 1
    assert len(ticks(engine)) == 1
