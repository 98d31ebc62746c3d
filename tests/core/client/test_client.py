from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencerow.client import Client
from fencerow.core.client.refs import CancelAnswer, Key
from fencerow.core.model import wakeup
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import KeyClaim
from fencerow.core.model.state import State
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.errors import IllegalMove, InvalidInput, JobGone, JobNotFound, ResultTimeout
from tests.core.client.flaky import Flaky
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, running, submit
from tests.kit.plainly import plainly


@pytest.fixture
def client(engine: AnyEngine) -> Iterator[Client]:
    made = Client(engine, actor="ada")
    yield made
    made.close()


def submit_keyed(client: Client, key: str = "k") -> str:
    job = new_job(scope="send", key=key)
    claimed = KeyClaim(scope="send", key=key, job_id=job.id, fingerprint="f", lifetime_s=60)
    (answer,) = plainly(client.submit, [Submission(job, claimed)])
    return answer.id


def test_a_job_is_found_by_its_id_and_by_its_key(client: Client) -> None:
    job_id = submit_keyed(client)

    assert client.get(job_id).id == job_id
    assert client.get(job_id.upper()).id == job_id
    assert client.get(Key("send", "k")).id == job_id


async def test_the_async_twins_find_the_same(client: Client) -> None:
    job_id = submit_keyed(client)

    assert (await client.aget(Key("send", "k"))).id == job_id
    assert [job.id for job in await client.alist_jobs(name="send")] == [job_id]
    assert await client.alogs(job_id) == []
    assert [each.kind for each in await client.atimeline(job_id)] == ["submitted"]


def test_what_is_nowhere_is_not_found(client: Client) -> None:
    for call in (client.get, client.cancel, client.revive, client.delete, client.timeline):
        with pytest.raises(JobNotFound):
            call(new_id())
    with pytest.raises(JobNotFound, match="no job has the key"):
        client.get(Key("send", "nobody"))
    with pytest.raises(JobNotFound):
        client.get(Key("other scope", "k"))


def test_a_text_that_is_no_id_is_refused_before_the_database_is_asked(engine: AnyEngine) -> None:
    flaky = Flaky(engine)

    with pytest.raises(InvalidInput):
        Client(flaky).get("17")

    assert flaky.ran == []


def test_a_key_remembers_a_job_that_was_removed(client: Client) -> None:
    job_id = submit_keyed(client)
    client.cancel(job_id)
    client.delete(job_id)

    with pytest.raises(JobGone):
        client.get(Key("send", "k"))


def test_a_queued_job_is_cancelled_at_once(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)

    assert client.cancel(job_id, reason="a mistake") is CancelAnswer.CANCELLED
    assert read(engine, job_id).state is State.CANCELLED
    assert [(each.kind, each.actor) for each in client.timeline(job_id)][-1] == ("cancelled", "ada")


def test_a_running_job_is_asked_to_stop_and_its_holder_is_told(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    flaky = Flaky(engine)

    assert Client(flaky).cancel(job.id) is CancelAnswer.REQUESTED

    assert [wakeup.decode(text) for text in flaky.woken] == [wakeup.CancelAsked(holder, job.id)]


def test_only_queued_leaves_a_running_job_alone(engine: AnyEngine, client: Client) -> None:
    job = running(engine)

    with pytest.raises(IllegalMove) as raised:
        client.cancel(job.id, only_queued=True)

    assert raised.value.state == "running"
    assert read(engine, job.id).cancel_requested_at_us is None


def test_cancelling_an_awaited_job_announces_its_end(engine: AnyEngine) -> None:
    (job_id,) = submit(engine)
    engine.run(store.mark_awaited([job_id]))
    flaky = Flaky(engine)

    Client(flaky).cancel(job_id)

    assert [wakeup.decode(text) for text in flaky.woken] == [wakeup.JobsEnded((job_id,))]


def test_a_finished_job_is_revived_and_its_queue_woken(engine: AnyEngine) -> None:
    (job_id,) = submit(engine)
    flaky = Flaky(engine)
    client = Client(flaky)
    client.cancel(job_id)

    client.revive(job_id)

    assert read(engine, job_id).state is State.QUEUED
    (heard,) = [wakeup.decode(text) for text in flaky.woken]
    assert isinstance(heard, wakeup.Queued)
    assert heard.queue == "mail"
    with pytest.raises(IllegalMove):
        client.revive(job_id)


def test_only_finished_jobs_are_deleted(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)

    with pytest.raises(IllegalMove, match="cancel it first"):
        client.delete(job_id)
    client.cancel(job_id)
    client.delete(job_id)

    with pytest.raises(JobNotFound):
        client.get(job_id)


def test_the_timeline_tells_a_jobs_life_in_order(engine: AnyEngine, client: Client) -> None:
    job = running(engine, holder := register(engine), submitted_by="bob")
    engine.run(
        store.requeue([store.Requeue(id=job.id, attempt=1, kind="retried", failures=1)], holder=holder)
    )
    (again,) = claim(engine, holder)
    engine.run(store.succeed([store.Success(job.id, again.attempt, "1")], holder=holder))

    told = client.timeline(job.id)

    assert [each.kind for each in told] == ["submitted", "claimed", "retried", "claimed", "succeeded"]
    assert told[0].actor == "bob"
    assert [(each.attempt, each.actor) for each in told if each.kind == "claimed"] == [
        (1, holder),
        (2, holder),
    ]


def test_waiting_for_an_end_tells_how_it_ended_without_raising(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    with pytest.raises(ResultTimeout):
        client.wait_ended(job_id, 0.05)
    client.cancel(job_id)

    assert client.wait_ended(job_id, 5).state is State.CANCELLED


async def test_the_async_twin_of_waiting_takes_a_key(client: Client) -> None:
    job_id = submit_keyed(client)
    await client.acancel(Key("send", "k"))

    assert (await client.await_ended(Key("send", "k"), 5)).id == job_id


def test_a_handle_made_from_an_id_reads_plain_data(engine: AnyEngine, client: Client) -> None:
    job = running(engine, holder := register(engine))
    engine.run(store.succeed([store.Success(job.id, 1, '{"pages":[1,2]}')], holder=holder))

    handle = client.handle(job.id)

    assert handle.result(60) == {"pages": [1, 2]}
    assert handle.status() is State.SUCCEEDED
    assert handle.refresh().attempt == 1


async def test_a_handle_moves_its_job(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    handle = client.handle(job_id)

    assert await handle.acancel() is CancelAnswer.CANCELLED
    await handle.arevive()
    assert await handle.astatus() is State.QUEUED
    assert await handle.acancel() is CancelAnswer.CANCELLED
    await handle.arevive()
    assert (await handle.arefresh()).state is State.QUEUED


def test_queues_are_paused_once_and_resumed_with_a_wake_up(engine: AnyEngine) -> None:
    submit(engine)
    flaky = Flaky(engine)
    client = Client(flaky, actor="ada")

    assert client.pause_queue("mail", reason="upgrade")
    assert not client.pause_queue("mail")
    assert [(each.name, each.paused_by, each.reason) for each in client.paused_queues()] == [
        ("mail", "ada", "upgrade")
    ]
    assert client.resume_queue("mail")
    assert not client.resume_queue("mail")

    heard, *gates = [wakeup.decode(text) for text in flaky.woken]
    assert isinstance(heard, wakeup.Queued)
    assert (heard.queue, heard.priority) == ("mail", 0)
    assert all(isinstance(each, wakeup.Arrived) for each in gates)
