"""Limits that jobs name: never one job more, under all its names at once; and nobody waits for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fencerow import App, Client, InvalidInput
from fencerow.core.errors import DeclarationError, OlderWorkers
from fencerow.core.model import rules
from fencerow.core.model.job import NewJob
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Requeue, Success
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.limits import Limit, Rate
from fencerow.limits.errors import UnknownLimit
from fencerow.limits.limits import declare
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing, looks
from fencerow.turns.handing import BESIDE
from tests.cli import conftest as command_line
from tests.core.store.stage import rows
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit

url = command_line.url  # a fixture


def limited(engine: AnyEngine, *names: str, count: int = 1, **changes: Any) -> list[str]:
    """Jobs that name these limits, in the order in which they were submitted."""
    return submit(engine, *(new_job(**{"limits": names, **changes}) for _ in range(count)))


def define(engine: AnyEngine, *limits: Limit) -> None:
    for limit in limits:
        Client(engine).limits.define(limit)


def hand_over(engine: AnyEngine) -> list[str]:
    """Who gets a turn, until nobody does."""
    found: list[str] = []
    while engine.run(looks.turns_wanted())[0]:
        found += [job.id for job in engine.run(handing.hand_over()).queued]
    return found


def end(engine: AnyEngine, holder: str, *ids: str) -> None:
    assert engine.run(store.succeed([Success(job_id, 1, "1") for job_id in ids], holder=holder))


def at(engine: AnyEngine, *ids: str) -> list[str | None]:
    """Where they wait; None: they do not."""
    return [read(engine, job_id).gate for job_id in ids]


def test_jobs_share_a_limit_whatever_they_are_and_wherever_they_lie(engine: AnyEngine) -> None:
    define(engine, Limit("github", at_once=2))
    ids = [*limited(engine, "github", count=2), *limited(engine, "github", queue="else", count=2)]
    holder = register(engine)
    assert claim(engine, holder, limit=10) == []

    assert hand_over(engine) == ids[:2]
    assert hand_over(engine) == []
    claim(engine, holder, limit=10)
    end(engine, holder, ids[1])
    assert hand_over(engine) == [ids[2]]
    end(engine, holder, ids[0])
    assert hand_over(engine) == [ids[3]]


def test_each_key_has_the_whole_limit_for_itself_unless_it_has_one_of_its_own(engine: AnyEngine) -> None:
    define(engine, Limit("mail", at_once=1, per_key=True), Limit("mail/big", at_once=3))
    ada, bob = limited(engine, "mail/ada", count=2), limited(engine, "mail/bob", count=2)
    big = limited(engine, "mail/big", count=4)

    assert sorted(hand_over(engine)) == sorted([ada[0], bob[0], *big[:3]])
    Client(engine).limits.remove("mail/big")
    assert hand_over(engine) == []


@pytest.mark.parametrize("place", range(4))
def test_a_turn_counts_under_each_limit_that_the_job_names(engine: AnyEngine, place: int) -> None:
    names = ["a", "b", "c", "d"]
    define(engine, *(Limit(name, at_once=1 if name == names[place] else 9) for name in names))
    (all_of_them,) = limited(engine, *names)
    assert hand_over(engine) == [all_of_them]

    (next_of_one,) = limited(engine, names[place])
    assert hand_over(engine) == []
    asked = Client(engine).limits.look(names[place])
    assert [each.id for each in asked.holders] == [all_of_them]
    assert [each.id for each in asked.waiting] == [next_of_one]


def test_a_job_gets_all_its_turns_at_once_and_waits_where_there_is_none(engine: AnyEngine) -> None:
    define(engine, Limit("a", at_once=2), Limit("b", at_once=1))
    holder = register(engine)
    (first,) = limited(engine, "b")
    assert hand_over(engine) == [first]
    (both,) = limited(engine, "a", "b")
    (key,) = limited(engine, "a", "b", exclusive="k")
    (free,) = limited(engine, "a")

    assert hand_over(engine) == [free]
    assert at(engine, both, key) == ["limit:b", "limit:b"], "nobody scans the gate of a for them"
    claim(engine, holder, limit=10)
    end(engine, holder, first)
    assert hand_over(engine) == [both]
    claim(engine, holder, limit=10)
    assert at(engine, key) == ["limit:b"]
    end(engine, holder, both)
    assert hand_over(engine) == [key]


def test_an_exclusive_key_and_a_limit_hold_together(engine: AnyEngine) -> None:
    define(engine, Limit("a", at_once=2))
    holder = register(engine)
    ids = limited(engine, "a", count=3, exclusive="k")
    others = limited(engine, "a", count=3)

    assert hand_over(engine) == [ids[0], others[0]]
    claim(engine, holder, limit=10)
    end(engine, holder, others[0])
    # The next of the key is first in line at the limit, or at its key: in either case somebody else uses the room.
    assert hand_over(engine) == [others[1]]
    claim(engine, holder, limit=10)
    end(engine, holder, ids[0])
    assert hand_over(engine) == [ids[1]]


def test_many_at_a_gate_who_need_other_gates_too_are_found_in_the_end(engine: AnyEngine) -> None:
    """More than one look sees: those that were not locked are looked at again."""
    define(engine, Limit("a", at_once=200), Limit("t", at_once=1, per_key=True))
    jobs = [new_job(limits=("a", f"t/{number // 2}")) for number in range(150)]
    ids = submit(engine, *jobs)

    assert sorted(hand_over(engine)) == sorted(ids[::2])
    assert at(engine, *ids[1::2]) == [f"limit:t/{number}" for number in range(75)]


def test_one_that_needs_more_than_those_before_it_is_found_in_its_place(engine: AnyEngine) -> None:
    """Those who need one gate each get their turns without a choice among them, up to the first that needs more."""
    define(engine, Limit("a", at_once=60), Limit("b", at_once=1))
    limited(engine, "b")
    hand_over(engine)
    late = limited(engine, "a", count=20)
    early = limited(engine, "a", count=BESIDE + 1, priority=1)
    (more,) = limited(engine, "a", "b", priority=1)
    (paused,) = limited(engine, "a", queue="still", priority=2)
    engine.run(pause_queue("still", actor=None))

    assert sorted(hand_over(engine)) == sorted([*early, *late[:9]])
    assert at(engine, more, paused) == ["limit:b", "limit:a"]
    assert at(engine, *late[9:]) == ["limit:a"] * 11
    define(engine, Limit("a", at_once=65))
    soon = limited(engine, "a", count=4, priority=1)
    assert sorted(hand_over(engine)) == sorted([*soon, late[9]]), "five in all, whatever lanes they come from"


def test_a_retry_gives_its_turn_up_and_a_cancelled_job_holds_none(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    define(engine, Limit("a", at_once=1))
    ids, holder = limited(engine, "a", count=3), register(engine)
    assert hand_over(engine) == ids[:1]
    claim(engine, holder)
    back = Requeue(id=ids[0], attempt=1, kind="retried", delay_s=5.0, failures=1)
    assert engine.run(store.requeue([back], holder=holder))[0].waits
    assert hand_over(engine) == [ids[1]]
    engine.run(store.cancel(ids[1], actor="ada"))
    assert hand_over(engine) == [ids[2]]
    engine.run(store.cancel(ids[2], actor="ada"))
    clock.advance(6)
    assert [job.id for job in engine.run(handing.hand_over()).queued] == ids[:1]


def test_a_rate_gives_turns_as_time_does_and_says_when_to_look_again(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    define(engine, Limit("a", rate=Rate(1, per_s=10, burst=2)))
    ids = limited(engine, "a", count=4)
    assert hand_over(engine) == ids[:2]
    arrived, due_us = engine.run(looks.turns_wanted())
    assert not arrived and due_us is not None and 0 < due_us <= 10e6

    engine.run(store.cancel(ids[0], actor="ada"))
    assert hand_over(engine) == [], "a turn that was given is not given back to the rate"
    clock.advance(10)
    assert [job.id for job in engine.run(handing.hand_over()).queued] == [ids[2]]
    claim(engine, register(engine))
    clock.advance(-3_600)  # as a server's clock may
    late = limited(engine, "a")
    assert hand_over(engine) == []
    _, due_us = engine.run(looks.turns_wanted())
    assert due_us is not None and due_us <= 20e6
    clock.advance(10)
    assert [job.id for job in engine.run(handing.hand_over()).queued] == late, "it waited for no hour"


def test_hours_keep_jobs_waiting_until_they_open(engine: AnyEngine, clock: DatabaseClock) -> None:
    now_us = read(engine, submit(engine)[0]).submitted_at_us
    hour = now_us // 3_600_000_000 % 24
    define(engine, Limit("a", hours=f"{(hour + 2) % 24:02}:00-{(hour + 4) % 24:02}:00"))
    ids = limited(engine, "a", count=2)
    assert hand_over(engine) == []
    _, due_us = engine.run(looks.turns_wanted())
    assert due_us is not None and 0 < due_us <= 2 * 3_600e6
    clock.advance(due_us / 1e6 + 1)
    assert [job.id for job in engine.run(handing.hand_over()).queued] == ids


def test_a_change_counts_from_the_next_turn_on(engine: AnyEngine) -> None:
    define(engine, Limit("a", at_once=1))
    ids, holder = limited(engine, "a", count=6), register(engine)
    assert hand_over(engine) == ids[:1]

    define(engine, Limit("a", at_once=3))
    assert hand_over(engine) == ids[1:3], "raised: who waits is let in at once"
    define(engine, Limit("a", at_once=2))
    claim(engine, holder, limit=10)
    end(engine, holder, ids[0])
    assert hand_over(engine) == [], "lowered: nobody is let in until enough have left"
    end(engine, holder, ids[1])
    assert hand_over(engine) == [ids[3]]

    Client(engine).limits.remove("a")
    assert hand_over(engine) == ids[4:], "removed: it binds nobody, and who waited is let in"


def test_a_definition_that_nobody_understands_lets_nothing_through(engine: AnyEngine) -> None:
    define(engine, Limit("a", at_once=1))
    limited(engine, "a")
    name = "fencerow.limits" if engine.dialect == "postgres" else "fencerow_limits"
    rows(engine, f"""UPDATE {name} SET definition = '{{{{"at_once":-1}}}}'""")
    assert hand_over(engine) == []
    limited(engine, "a")
    define(engine, Limit("a", at_once=5))
    assert len(hand_over(engine)) == 2


REFUSED = [
    ("github", "fencerow limits set github --at-once 4`"),
    ("github/ada", "--per-key"),
    ("plain/ada", "name plain"),
    ("mail", "name mail/"),
    ("queue:mail", "leave it out"),
    ("fleet", "leave it out"),
    ("a b", "correct the name"),
]


@pytest.mark.parametrize(("name", "fix"), REFUSED)
def test_a_limit_that_binds_nobody_cannot_be_named(engine: AnyEngine, name: str, fix: str) -> None:
    define(engine, Limit("plain", at_once=1), Limit("mail", at_once=1, per_key=True))
    job = new_job(limits=("plain", name))
    ways: list[Callable[[list[NewJob]], Operation[list[str]]]] = [store.submit_gated, store.resubmit]
    if engine.dialect == "postgres":
        ways.append(store.submit_by_copy)
    for way in ways:
        with pytest.raises(InvalidInput) as refused:
            engine.run(way([new_job(), job]))
        assert fix in refused.value.fix and (refused.value.code == "FR-791" or " " in name)
    assert engine.run(store.lanes("mail"))[0] == [], "nothing was stored"


# --- as people write it ----------------------------------------------------------------------------------


def test_a_job_names_limits_itself_or_by_its_arguments(engine: AnyEngine, url: str) -> None:
    with App(url, limits=[Limit("github", at_once=1), Limit("mail", at_once=1, per_key=True)]) as app:

        @app.job(limits=("github", lambda to, **_: f"mail/{to}" if to else None))
        def send(to: str, body: str = "") -> None: ...

        app.declare_limits()
        found = [
            read(engine, handle.id).limits
            for handle in (
                send.submit("ada"),
                send.submit(""),
                send.using(limits="github").submit("ada"),
                send.using(limits=()).submit("ada"),
            )
        ]
        assert found == [["github", "mail/ada"], ["github"], ["github"], None]
        assert read(engine, send.using(limits=()).submit("x").id).state is State.QUEUED
        with pytest.raises(UnknownLimit, match="gitlab"):
            send.using(limits=("gitlab",)).submit("ada")


async def test_one_that_is_refused_leaves_those_alone_with_whom_it_was_sent(
    engine: AnyEngine, url: str
) -> None:
    async with App(url) as app:

        @app.job
        def send() -> None: ...

        bad, *good = await asyncio.gather(
            send.using(limits="nobody").asubmit(),
            *(send.asubmit() for _ in range(3)),
            return_exceptions=True,
        )
    assert isinstance(bad, UnknownLimit)
    assert not [each for each in good if isinstance(each, BaseException)]


@pytest.mark.parametrize("given", [5, ("",), (5,), ("x",) * 11, (lambda nobody: "x",)])
def test_what_cannot_name_a_limit_is_refused_where_it_is_written(url: str, given: Any) -> None:
    app = App(url)
    with pytest.raises(DeclarationError):

        @app.job(limits=given)
        def send(to: str) -> None: ...


def test_a_worker_that_does_not_know_limits_keeps_them_from_being_submitted(
    engine: AnyEngine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is in the release that brings such an option."""
    monkeypatch.setattr(rules, "KNOWN", ("limits",))
    register(engine)
    with App(url, limits=[Limit("github", at_once=1)]) as app:

        @app.job(limits="github")
        def send() -> None: ...

        app.declare_limits()
        with pytest.raises(OlderWorkers, match="limits"):
            send.submit()


def test_a_program_that_declares_what_is_declared_waits_for_nobody(pg: PostgresEngine) -> None:
    """Each worker that starts does, also while turns are given under the limit."""
    limit = Limit("a", at_once=1)
    pg.run(declare(limit, actor=None))
    limited(pg, "a")
    with pg.session() as session:
        session.run(handing.hand_over())
        assert not pg.run(declare(limit, actor=None)).changed


def test_jobs_of_a_limit_that_have_a_key_each_get_their_turns_in_one_go(engine: AnyEngine) -> None:
    """Their keys' gates stand before the limit's in the order of locks, and are taken where nobody holds them."""
    define(engine, Limit("few", at_once=1))
    ids = [limited(engine, "few", exclusive=f"k{number}")[0] for number in range(60)]
    assert hand_over(engine) == ids[:1]
    assert at(engine, *ids[1:]) == ["limit:few"] * 59
    define(engine, Limit("few", at_once=100))

    handed = engine.run(handing.hand_over(["limit:few"]))

    assert {job.id for job in handed.queued} == set(ids[1:])
    assert not handed.more
    assert hand_over(engine) == []
