"""Relays in the dashboard: how they stand, what a person can do, what could not be read. No broker is needed."""

from __future__ import annotations

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.relay import parts, relays
from fencerow.relay.parts import Intake, Unread
from fencerow.web.dashboard.roles import Role
from tests.web.dashboard.hostile import HOSTILE, is_inert
from tests.web.dashboard.visiting import Doorkeeper, Visits


async def known(
    app: App, name: str = "orders", *, place: str = "kafka host:9092 topic t", bad: str = "no JSON"
) -> None:
    """A relay that takes and is run by w1, with a message that could not be read."""
    await app.client.apaused_queues()  # an app makes its tables when it is first used
    holder, arun = new_id(), app.engine.arun
    await arun(relays.know(name, "in", place))
    await arun(relays.renew(name, holder=holder, name="w1", lease_s=3600.0, trouble=None))
    await arun(parts.make_parts(name, 2))
    lease = (await arun(parts.hold_parts(name, holder=holder))).leases[0]
    await arun(parts.take(lease, Intake("8", 2, unread=[Unread("7", bad[:50], None, "ew==", 1, bad)], lag=5)))


async def test_relays_are_shown_with_what_is_wrong(app: App, visits: Visits) -> None:
    await known(app)
    await app.engine.arun(relays.know("outward", "out", "redis://cache/0 stream s"))
    all_of_them = await visits.see("/relays")
    one = await visits.see("/relays/one?name=orders")
    sends = await visits.see("/relays/one?name=outward")
    await visits.see("/relays/one?name=nobody", status=404)

    assert "1 message of the relay orders could not be read so far" in all_of_them.text
    assert "no worker runs the relay outward" in all_of_them.text and "no JSON" in all_of_them.text
    assert "w1" in one.text and "not begun" in one.text and "5 messages" in one.text
    assert "relay.outward" in sends.text and "Parts" not in sends.text


async def test_a_relay_is_paused_moved_and_what_was_unread_forgotten(
    app: App, visits: Visits, door: Doorkeeper
) -> None:
    await known(app)
    path = "/relays/one?name=orders"
    here = {"back": path, "on": path, "relay": "orders"}
    rests = await visits.press("/relays/pause", reason="migration", **here)
    again = await visits.press("/relays/pause", **here)
    goes_on = await visits.press("/relays/resume", **here)
    move = {**here, "part": "0", "position": "3"}
    refused = await visits.send("/relays/move", form=await visits.token(path), **move)
    door.role = Role.ADMIN
    moved = await visits.press("/relays/move", **move)
    wrong = await visits.press("/relays/move", **(move | {"position": "1-1"}))
    (unread,) = await app.engine.arun(relays.unread(limit=2))
    forgotten = await visits.press("/relays/discard", id=str(unread.id), **here)
    nothing = await visits.press("/relays/discard", all="yes", **here)
    audited = [(each.verb, each.person) for each in await app.client.audit.aentries()]

    assert "rests since" in rests.text and "migration" in rests.text and "rests already" in again.text
    assert "orders goes on" in goes_on.text and refused.status_code == 403
    assert "goes on at 3" in moved.text and "no position of kafka" in wrong.text
    assert "1 message of orders: forgotten" in forgotten.text and "forgotten already" in nothing.text
    assert {verb for verb, person in audited if person == "mara"} == {
        "paused", "resumed", "moved", "unread messages discarded",
    }  # fmt: skip


async def test_hostile_text_is_inert(lite_app: App, visits_lite: Visits) -> None:
    for each in HOSTILE[:12]:
        await known(lite_app, each, place=f"kafka {each}", bad=each)
        await lite_app.engine.arun(relays.pause(each, each))
    is_inert(await visits_lite.see("/relays"), "all")
