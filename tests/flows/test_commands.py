"""What people are shown of flows, and what the doctor says of those that do not go on."""

from __future__ import annotations

import msgspec

from fencerow.core.config import CoreConfig
from fencerow.flows.checks import examine_flows
from fencerow.flows.removal import purge
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.core.store.stage import rows
from tests.events.conftest import url_of
from tests.flows.stage import Shop, advanced, end
from tests.kit.jobs import AnyEngine

cli = command_line.cli  # a fixture


def test_a_flow_is_listed_and_drawn(shop: Shop, engine: AnyEngine, cli: Cli) -> None:
    flow = shop.flow("report")
    bad = flow.add("bad", shop.fail.call("bad"))
    flow.add("good", shop.say.call("good"), after=[bad])
    flow.add("never", shop.say.call("never"), needs=[bad, "good"])
    flow.on_failed(shop.say.call("tell"))
    handle = flow.submit()
    waiting = cli("why", handle.job_named("never").id, "--url", url_of(engine)).out
    assert f"it waits for 'bad', 'good' in flow {handle.id}" in " ".join(waiting.split())
    end(engine, handle.job(bad).id, fail=True)
    advanced(engine)
    url = url_of(engine)

    listed, shown = cli("flows", "--url", url).out, cli("flows", "show", handle.id, "--url", url).out
    plain = msgspec.json.decode(cli("flows", "show", handle.id, "--json", "--url", url).out)

    assert handle.id in listed
    assert "2 of 3" in listed
    assert [line.split()[:3] for line in shown.splitlines() if line.strip()[:2] in ("x ", "o ", "- ")] == [
        ["x", "bad", "failed"], ["o", "good", "queued"], ["-", "never", "cancelled"],
    ]  # fmt: skip
    assert "needs bad, good" in shown
    assert "on failed: say" in shown
    assert plain["counts"] == {
        "waiting": 0, "queued": 1, "running": 0, "succeeded": 0, "failed": 1, "cancelled": 1,
    }  # fmt: skip
    assert [(each["name"], each["needs"], each["after"]) for each in plain["graph"]] == [
        ("bad", [], []), ("good", [], ["bad"]), ("never", ["bad", "good"], []),
    ]  # fmt: skip
    assert cli("flows", "show", "00000000-0000-0000-0000-000000000000", "--url", url).code != 0


def test_the_doctor_finds_ends_that_nobody_tells_and_flows_that_nobody_can_wake(
    shop: Shop, engine: AnyEngine, clock: DatabaseClock
) -> None:
    flow = shop.flow("stuck")
    first = flow.add("first", shop.say.call("first"))
    flow.add("second", shop.say.call("second"), needs=[first])
    handle = flow.submit()
    end(engine, handle.job(first).id)
    assert [each.name for each in examine_flows(engine, CoreConfig())] == ["flows"]

    clock.advance(100)
    late = [each.name for each in examine_flows(engine, CoreConfig())]
    rows(engine, "UPDATE {flow_jobs} SET told = (1 = 1) WHERE state IS NOT NULL")  # somebody meddled
    stuck = [each.name for each in examine_flows(engine, CoreConfig())]

    assert late == ["flows", "flows that nobody wakes"]
    assert stuck == ["flows", "flow with nobody to wake it"]


def test_a_flow_is_forgotten_after_its_retention(shop: Shop, engine: AnyEngine, clock: DatabaseClock) -> None:
    flow = shop.flow()
    flow.add("a", shop.say.call("a"))
    flow.add("b", shop.say.call("b"), after=["a"])
    flow.on_done(shop.say.call("c"))
    handle = flow.submit()
    shop.run()
    assert engine.run(purge(age_s=100.0, limit=10)) == 0

    clock.advance(101)
    assert engine.run(purge(age_s=100.0, limit=10)) == 1

    assert not rows(engine, "SELECT job_id FROM {flow_jobs}")
    assert not rows(engine, "SELECT job_id FROM {flow_edges}")
    assert handle.replay is False
