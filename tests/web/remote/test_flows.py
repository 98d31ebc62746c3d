"""Flows, steps and signals through a client of the gateway: the verbs that the library has beside the database."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from fencerow import App, Job
from fencerow.errors import (
    FlowConflict,
    FlowCycle,
    FlowEnded,
    FlowNotFound,
    InvalidInput,
    KeyConflict,
    NoFlowResult,
    NotReady,
    ResultTimeout,
    SignalRefused,
    UnknownFlowJob,
)
from fencerow.flows import Flow, FlowHandle
from fencerow.web.remote import RemoteClient, RemoteFlow, RemoteFlowHandle
from tests.kit.pace import PATIENCE_S

NOBODY = "01900000-0000-7000-8000-000000000000"


def two_stages(client: RemoteClient, key: str | None = None, *, delay_s: float = 0) -> RemoteFlow:
    """A flow whose second stage may be late."""
    flow = client.flow("two", key=key)
    first = flow.add("first", "pages", {"path": "a"}, stage=True)
    flow.add("second", "pages", {"path": "b"}, needs=[first], stage=True, delay_s=delay_s)
    flow.on_done("pages", {"path": "done"})
    return flow


async def test_a_flow_from_submit_to_its_last_stage(lite_app: App, client: RemoteClient) -> None:
    flow = two_stages(client, "k", delay_s=3600)
    handle, again = await flow.asubmit(), await two_stages(client, "k", delay_s=3600).asubmit()
    other = client.flow("two", key="k")
    other.add("first", "pages", {"path": "b"})
    with pytest.raises(FlowConflict):
        await other.asubmit()
    assert (handle.id, handle.replay, again.replay) == (again.id, False, True)
    with pytest.raises(NotReady):
        await handle.aresult()

    async with lite_app.worker():
        assert await handle.aresult(timeout_s=PATIENCE_S) == {"path": "a", "pages": 3}
        assert await handle.aresult(wait_for="second", timeout_s=0.05) == {"path": "a", "pages": 3}
        with pytest.raises(ResultTimeout, match="had not ended within"):
            await handle.await_ended(0.05)
        await (await handle.ajob_named("second")).arun_now()
        assert await handle.aresult(wait_for="second", timeout_s=PATIENCE_S) == {"path": "b", "pages": 3}
        assert (await handle.await_ended(PATIENCE_S)).succeeded == 2
    assert [(each.name, each.needs) for each in await handle.ajobs()] == [
        ("first", []),
        ("second", ["first"]),
    ]
    assert [each.id for each in await client.flows.aknown(name="two")] == [handle.id]
    assert await client.flows.aknown(name="two", live=True) in ([], [await _summary(client)])


async def _summary(client: RemoteClient) -> object:
    return (await client.flows.aknown())[0]


async def test_what_is_refused_is_the_librarys_own_error(lite_app: App, client: RemoteClient) -> None:
    ring = client.flow("ring")
    ring.add("a", "pages", {"path": "a"}, needs=["b"])
    ring.add("b", "pages", {"path": "a"}, after=["a"])
    with pytest.raises(FlowCycle):
        await ring.asubmit()
    with pytest.raises(FlowNotFound):
        await client.flows.handle(NOBODY).arefresh()
    handle = await two_stages(client).asubmit()
    with pytest.raises(UnknownFlowJob):
        await handle.aresult(wait_for="third")
    with pytest.raises(UnknownFlowJob):
        await handle.ajob_named("third")
    assert (await handle.acancel()).cancelled == 2
    async with lite_app.worker():
        assert (await handle.await_ended(PATIENCE_S)).cancelled == 2
        with pytest.raises(NoFlowResult):
            await handle.aresult()
        with pytest.raises(FlowEnded):
            await handle.acancel()
        revived = await handle.arevive()
        assert revived.queued + revived.waiting == 2
        assert (await handle.await_ended(PATIENCE_S)).succeeded == 2


async def test_a_lost_submit_of_a_flow_makes_no_second_one(client: RemoteClient) -> None:
    """The client sends it again under the key that it made itself; so does a caller who repeats it."""
    flow = two_stages(client)
    first, again = await flow.asubmit(), await flow.asubmit()
    assert (first.id, again.replay) == (again.id, True)


async def test_a_signal_and_the_steps_of_a_job(lite_app: App, client: RemoteClient) -> None:
    @lite_app.job(name="order", queue="documents")
    async def order(job: Job) -> str:
        await job.step("charge", charge)
        return f"for {await job.wait_for('approved')}"

    handle = await client.asubmit("order")
    first = await client.asignal(handle, "approved", "ada", signal_id="s")
    again = await client.asignal(handle.id, "approved", "ada", signal_id="s")
    with pytest.raises(KeyConflict):
        await client.asignal(handle, "approved", "bob", signal_id="s")
    await client.asignal(handle, "page 1/2")
    assert (first.id, first.woken) == (again.id, False)
    async with lite_app.worker():
        assert await handle.aresult(PATIENCE_S) == "for ada"
        assert [each.name for each in await client.asteps(handle)] == ["charge", "signal approved"]
        assert (await client.astep(handle, "charge")).result == 7
        sent = await client.asignals(handle)
        assert [(each.name, each.sent_by) for each in sent] == [("approved", "tests"), ("page 1/2", "tests")]
        with pytest.raises(SignalRefused):
            await client.asignal(handle, "approved")
        with pytest.raises(InvalidInput, match="nobody"):
            await client.arevive_from(handle, "nobody")
        assert await client.arevive_from(handle, "signal approved") == ["signal approved"]
        async with asyncio.timeout(PATIENCE_S):
            while not (waits := await client.awaits(handle)):
                await asyncio.sleep(0.01)
        assert waits[0].signal == "approved"
        assert (await client.asignal(handle, "approved", "bob")).woken
        assert await handle.aresult(PATIENCE_S) == "for bob"


async def charge() -> int:
    return 7


async def test_threads_have_the_same_verbs(client: RemoteClient) -> None:
    def steps() -> list[object]:
        handle = two_stages(client).submit()
        return [handle.refresh().state, handle.counts().waiting, handle.cancel().cancelled]

    assert await asyncio.to_thread(steps) == ["running", 1, 2]


def test_flows_have_the_verbs_of_the_librarys() -> None:
    verbs = [
        (RemoteFlowHandle, FlowHandle, ("refresh", "counts", "jobs", "job_named", "wait_ended", "cancel", "revive")),
        (RemoteFlowHandle, FlowHandle, ("result",)),
        (RemoteFlow, Flow, ("submit",)),
    ]  # fmt: skip
    for kind, library, names in verbs:
        for name in names:
            own, other = (inspect.signature(getattr(each, name)) for each in (kind, library))
            assert set(own.parameters) == {
                each for each in other.parameters if each not in ("reason", "connection")
            }
            assert callable(getattr(kind, "await_ended" if name == "wait_ended" else f"a{name}"))
