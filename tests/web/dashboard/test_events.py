"""The screens of events and their lag, and what can be done there."""

from __future__ import annotations

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.events import NewEvent, apublish_many, consumers
from fencerow.events.asides import parked
from fencerow.events.consumers import Aside
from fencerow.events.groups import GroupStart, group_named, make_group
from fencerow.events.sequencer import sequence
from fencerow.web.dashboard.roles import Role
from tests.web.dashboard.hostile import HOSTILE
from tests.web.dashboard.visiting import Doorkeeper, Visits

ERROR = '{"type":"ValueError","message":"no account at postgres://bob:hunter2@db"}'
PAGE = "/events/group?name=billing"
HERE = {"back": PAGE, "on": PAGE, "group": "billing"}


async def parking(app: App) -> None:
    """Four events, the first two of them parked by the group `billing`, which has read no other."""
    await apublish_many(
        app, [NewEvent("order.paid", {"order": HOSTILE[0], "password": "hunter2"}, "ada") for _ in range(4)]
    )
    engine = app.engine
    await engine.arun(sequence())
    await engine.arun(make_group("billing", ["order.*"], partitions=1, start=GroupStart("beginning")))
    held = await engine.arun(consumers.hold_partitions("billing", holder=new_id(), name="w", lease_s=30.0))
    asides = [Aside(seq, seq, "ada", 8, 0.0, True, ERROR) for seq in (1, 2)]
    await engine.arun(consumers.advance(held.leases[0], old=0, cursor=2, asides=asides))


async def test_lag_and_parked_events_are_shown_redriven_and_discarded(app: App, visits: Visits) -> None:
    await parking(app)
    events, page = await visits.see("/events"), await visits.see(PAGE)
    redriven = await visits.press("/events/redrive", place="1", **HERE)
    late = await visits.press("/events/redrive", place="1", **HERE)
    odd = await visits.press("/events/discard", place="", **HERE)
    (left,) = await app.engine.arun(parked("billing"))
    discarded = await visits.press("/events/discard", all="yes", **HERE)
    unknown = await visits.see("/events/group?name=biling", status=404)

    assert "the log goes to position 4" in events.text and "2 events behind" in page.text
    for each in (events, page):
        assert (
            "ValueError: no account" in each.text and HOSTILE[0] in each.text and "hunter2" not in each.text
        )
    assert "1 event of group billing: delivered again" in redriven.text and left.seq == 2
    assert "is parked any more" in late.text and "is no position in the log" in odd.text
    assert "1 event of group billing: no longer parked" in discarded.text and "billing" in unknown.text
    assert await app.engine.arun(parked("billing")) == []


async def test_only_an_administrator_lets_a_group_read_again(
    lite_app: App, visits_lite: Visits, door: Doorkeeper
) -> None:
    await parking(lite_app)
    token = await visits_lite.token(PAGE)
    refused = await visits_lite.send(
        "/events/replay", form=token, **{"group": "billing", "from": "beginning"}
    )
    door.role = Role.ADMIN
    odd = await visits_lite.press("/events/replay", **HERE, **{"from": "soon"})
    replayed = await visits_lite.press("/events/replay", **HERE, **{"from": "2"})
    group = await lite_app.engine.arun(group_named("billing"))

    assert refused.status_code == 403 and "is no position" in odd.text
    assert "reads again after position 1" in replayed.text and "3 events behind" in replayed.text
    assert group.replayed_at_us is not None
