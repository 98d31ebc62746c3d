"""What people choose by is checked at the door, on both engines alike."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.client import Client
from fencerow.core.model.state import State, WorkerState
from fencerow.errors import InvalidInput
from tests.core.client.flaky import Flaky
from tests.kit.jobs import AnyEngine, register, submit
from tests.kit.plainly import plainly


@pytest.mark.parametrize("states", [["queued"], [State.QUEUED], ("queued", State.RUNNING), {"queued"}])
async def test_states_may_be_named(engine: AnyEngine, states: Any) -> None:
    (job_id,) = submit(engine)
    client = Client(engine)

    assert [job.id for job in plainly(client.list_jobs, states=states)] == [job_id]
    assert [job.id for job in await client.alist_jobs(states=states)] == [job_id]
    assert plainly(client.list_jobs, states=["failed"]) == []


@pytest.mark.parametrize("state", ["alive", WorkerState.ALIVE])
async def test_so_may_those_of_workers(engine: AnyEngine, state: Any) -> None:
    holder = register(engine)
    workers = Client(engine).workers

    assert [each.id for each in plainly(workers.registered, state=state)] == [holder]
    assert [each.id for each in await workers.aregistered(state=state)] == [holder]
    assert plainly(workers.registered, state="dead") == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such state": ({"states": ["done"]}, "known are waiting, queued"),
    "one text for a list": ({"states": "queued"}, r"pass states=\["),
    "no list": ({"states": 17}, "states is 17"),
    "no text in it": ({"states": [17]}, "states has 17"),
    "one tag for a list": ({"tags": "urgent"}, r"pass tags=\["),
    "a tag that is none": ({"tags": [17]}, "a tag is of type int"),
    "no id": ({"before_id": "17"}, "is not an id"),
    "none": ({"limit": 0}, "limit is 0"),
    "less than none": ({"limit": -1}, "limit is -1"),
    "no number": ({"limit": "many"}, "limit is 'many'"),
    "no text": ({"queue": 17}, "queue is of type int"),
    "a null character": ({"name": "a\0b"}, "name"),
}


@pytest.mark.parametrize(("given", "told"), REFUSED.values(), ids=REFUSED)
async def test_what_is_no_choice_is_refused_before_the_database_is_asked(
    engine: AnyEngine, given: dict[str, Any], told: str
) -> None:
    flaky = Flaky(engine)
    client = Client(flaky)

    with pytest.raises(InvalidInput, match=told):
        plainly(client.list_jobs, **given)
    with pytest.raises(InvalidInput, match=told):
        await client.alist_jobs(**given)
    assert flaky.ran == []


@pytest.mark.parametrize("given", [{"state": "busy"}, {"limit": 0}, {"state": 17}])
def test_so_it_is_of_workers(engine: AnyEngine, given: dict[str, Any]) -> None:
    flaky = Flaky(engine)

    with pytest.raises(InvalidInput):
        Client(flaky).workers.registered(**given)
    assert flaky.ran == []
