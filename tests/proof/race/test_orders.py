"""Races of operators who change a worker that runs, among themselves and with its death."""

from __future__ import annotations

from typing import Any

import msgspec

from fencerow.core.model.wanted import OrderedChange, SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.core.store.orders import Order
from fencerow.db.run import Operation
from fencerow.errors import OrderRefused, WorkerGone
from fencerow_proof.arena.actor import Actor, Script, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race
from tests.proof.race.people import FIRST, LEASE_S, SECOND, THIRD, acting, die, register

STATED = msgspec.json.encode(Stated(0, (SlotGroupNow(("mail",), 1),))).decode()


def registered(holder: str, former: str | None = None) -> Operation[bool]:
    return store.register(
        holder=holder,
        name="w",
        host="h",
        pid=1,
        info="{}",
        lease_s=LEASE_S,
        stated=STATED,
        former=former,
    )


def alive() -> Script:
    yield registered(FIRST)


def order(name: str, **change: Any) -> Actor:
    return acting(name, lambda: store.ordering(FIRST, OrderedChange(**change), actor=name))


def slots_wanted(story: Story, holder: str) -> list[int]:
    (row,) = story.run(store.list_workers(holder=holder))
    return [] if row.wanted is None else [group.slots for group in row.wanted.slot_groups]


def one_way(story: Story) -> None:
    """Whoever was told that it is so finds it so, unless a later order, made from it, says otherwise."""
    (row,) = story.run(store.list_workers(holder=FIRST))
    given = {name: each for name, each in story.results.items() if isinstance(each, Order)}
    refused = [each for each in story.results.values() if isinstance(each, Exception)]
    assert all(isinstance(each, OrderRefused) for each in refused), refused
    assert given, "of two operators one gets his way"
    assert row.wanted_version == len(given)
    assert sorted(each.version for each in given.values()) == list(range(1, len(given) + 1))
    newest = max(given.values(), key=lambda each: each.version)
    assert row.wanted == newest.wanted
    if {"slots", "pause"} == given.keys():  # one after the other: the later one keeps what the first wanted
        assert row.wanted is not None
        assert (row.wanted.paused, [group.slots for group in row.wanted.slot_groups]) == (True, [5])
    for each in refused:
        assert isinstance(each, OrderRefused)
        assert each.version == row.wanted_version, "told of another version than the one that holds"


two_operators = Scenario(
    "order × order", alive, [order("slots", slots=5), order("pause", paused=True)], one_way
)


def test_of_two_orders_at_once_none_undoes_the_other(race: Race) -> None:
    race(two_operators)


def test_one_undoes_the_other_without_the_version(race: Race) -> None:
    race.turns_red(
        two_operators,
        Cut(
            "order_worker",
            ("  AND worker.wanted_version = CAST(:version AS bigint)\n", ""),
            ("  AND wanted_version = :version\n", ""),
        ),
    )


# A death and a new registration meanwhile.


def about_to_die() -> Script:
    yield registered(FIRST)
    yield register(SECOND)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def reaping() -> Script:
    return (yield die(SECOND))


def coming_back() -> Script:
    """What the keeper does: told of its death, it registers anew and names its former registration."""
    if (yield store.renew(holder=FIRST)) is None:
        yield registered(THIRD, FIRST)
        return THIRD
    return FIRST


def an_order_is_kept_or_refused(story: Story) -> None:
    answer, now = story.results["slots"], story.results["worker"]
    if isinstance(answer, Order):
        assert slots_wanted(story, now) == [5], "an accepted order was lost with the registration"
    else:
        assert isinstance(answer, WorkerGone), answer
        assert slots_wanted(story, FIRST) == []


a_death = Scenario(
    "order × die × register anew",
    about_to_die,
    [order("slots", slots=5), acting("reaper", reaping), acting("worker", coming_back)],
    an_order_is_kept_or_refused,
)


def test_an_accepted_order_outlives_the_registration(race: Race) -> None:
    race(a_death)


def test_it_is_lost_without_the_look_at_the_state(race: Race) -> None:
    race.turns_red(
        a_death,
        Cut(
            "order_worker",
            ("  AND worker.state = 'alive'\n", ""),
            ("  AND state = 'alive'\n", ""),
        ),
    )


def test_it_is_lost_when_the_former_registration_is_not_named(race: Race) -> None:
    race.turns_red(
        a_death,
        Cut(
            "register",
            ("former.id = CAST(:former AS uuid)", "former.id = CAST(:former AS uuid) AND false"),
            ("former.id = :former", "former.id = :former AND false"),
        ),
    )
