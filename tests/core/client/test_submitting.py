from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fencerow.client import Client
from fencerow.core.model import wakeup
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.model.state import State
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.errors import InvalidInput, KeyConflict, OutcomeUnknown, Unavailable
from tests.core.client.flaky import Flaky
from tests.kit.jobs import AnyEngine, claim, new_job, read, register


def plain(**changes: Any) -> Submission:
    return Submission(new_job(**changes))


def keyed(key: str, fingerprint: str = "f", **changes: Any) -> Submission:
    job = new_job(scope="send", key=key, **changes)
    return Submission(
        job, KeyClaim(scope="send", key=key, job_id=job.id, fingerprint=fingerprint, lifetime_s=60)
    )


def submitted(client: Client, *submissions: Submission) -> list[str]:
    return [answer.id for answer in client.submit(submissions)]


@pytest.mark.parametrize("loss", ["lost after", "lost before"])
def test_a_submit_whose_reply_was_lost_makes_exactly_one_job(engine: AnyEngine, loss: str) -> None:
    client = Client(Flaky(engine, loss))
    wanted = plain()

    (answer,) = client.submit([wanted])

    assert answer.id == wanted.job.id
    assert [job.id for job in client.list_jobs()] == [wanted.job.id]


@pytest.mark.parametrize("loss", ["lost after", "lost before"])
async def test_the_same_holds_for_async_submits(engine: AnyEngine, loss: str) -> None:
    client = Client(Flaky(engine, loss))
    wanted = plain()

    (answer,) = await client.asubmit([wanted])

    assert [job.id for job in await client.alist_jobs()] == [answer.id]


def test_a_job_that_finished_before_the_repeat_does_not_run_again(engine: AnyEngine) -> None:
    wanted = plain()

    class FinishesMeanwhile(Flaky):
        def run(self, operation):  # type: ignore[no-untyped-def]
            try:
                return super().run(operation)
            finally:
                if operation.name == "submit":
                    holder = register(engine)
                    (claimed,) = claim(engine, holder)
                    engine.run(store.succeed([store.Success(claimed.id, 1, "null")], holder=holder))

    (answer,) = Client(FinishesMeanwhile(engine, "lost after")).submit([wanted])

    assert answer.id == wanted.job.id
    assert read(engine, wanted.job.id).state is State.SUCCEEDED
    assert claim(engine, register(engine)) == []


def test_repeats_go_on_while_the_database_is_away(engine: AnyEngine) -> None:
    flaky = Flaky(engine, "lost after", "down", "down", "lost before", "lost after")
    wanted = plain()

    Client(flaky).submit([wanted])

    assert flaky.ran == ["submit", *["resubmit"] * 5]
    assert len(Client(engine).list_jobs()) == 1


def test_after_its_patience_the_client_says_which_ids_are_in_doubt(engine: AnyEngine) -> None:
    client = Client(Flaky(engine, "lost after", *["down"] * 100), patience_s=0.2)
    wanted = [plain() for _ in range(5)]

    with pytest.raises(OutcomeUnknown) as raised:
        client.submit(wanted)

    assert raised.value.job_ids == tuple(each.job.id for each in wanted)
    assert wanted[0].job.id in str(raised.value)
    assert "2 more" in str(raised.value)
    assert raised.value.repeat == "ask"


def test_without_a_connection_nothing_is_stored_and_nothing_repeated(engine: AnyEngine) -> None:
    flaky = Flaky(engine, "down")

    with pytest.raises(Unavailable):
        Client(flaky).submit([plain()])

    assert flaky.ran == ["submit"]
    assert Client(engine).list_jobs() == []


def test_one_key_makes_one_job(engine: AnyEngine) -> None:
    client = Client(engine)

    (first,) = client.submit([keyed("k")])
    (second,) = client.submit([keyed("k")])

    assert not first.replay
    assert (second.id, second.replay) == (first.id, True)
    assert len(client.list_jobs()) == 1


def test_a_lost_reply_to_a_keyed_submit_is_no_replay(engine: AnyEngine) -> None:
    wanted = keyed("k")

    (answer,) = Client(Flaky(engine, "lost after")).submit([wanted])

    assert (answer.id, answer.replay) == (wanted.job.id, False)


def test_a_key_with_another_payload_is_refused_and_nothing_is_stored(engine: AnyEngine) -> None:
    client = Client(engine)
    (first,) = client.submit([keyed("k", "one")])

    with pytest.raises(KeyConflict) as raised:
        client.submit([plain(), keyed("new"), keyed("k", "other")])

    assert raised.value.job_id == first.id
    assert [job.id for job in client.list_jobs()] == [first.id]


def test_jobs_with_and_without_keys_share_one_transaction_and_keep_their_order(engine: AnyEngine) -> None:
    client = Client(engine)
    (known,) = client.submit([keyed("b")])
    wanted = [plain(), keyed("a"), keyed("b"), plain()]

    answers = client.submit(wanted)

    expected = [wanted[0].job.id, wanted[1].job.id, known.id, wanted[3].job.id]
    assert [answer.id for answer in answers] == expected
    assert [answer.replay for answer in answers] == [False, False, True, False]


def test_an_id_of_the_callers_own_may_be_submitted_again(engine: AnyEngine) -> None:
    client = Client(engine)
    job = new_job()

    (first,) = client.submit([Submission(job, own_id=True)])
    (second,) = client.submit([Submission(job, own_id=True)])

    assert (first.replay, second.replay) == (False, True)
    assert len(client.list_jobs()) == 1


def test_an_id_that_stands_for_other_work_is_refused(engine: AnyEngine) -> None:
    client = Client(engine)
    job = new_job()
    client.submit([Submission(job)])
    other = new_job('{"to":"bob"}', id=job.id)

    with pytest.raises(InvalidInput, match="belongs to another job"):
        client.submit([Submission(other, own_id=True)])


def own(job: NewJob, key: str | None = None) -> Submission:
    """A submit under an id of the caller's own, perhaps with a key."""
    if key is None:
        return Submission(job, own_id=True)
    template = msgspec.structs.replace(job.template, scope="send", key=key)
    claimed = KeyClaim(scope="send", key=key, job_id=job.id, fingerprint="f", lifetime_s=60)
    return Submission(msgspec.structs.replace(job, template=template), claimed, own_id=True)


@pytest.mark.parametrize("key", [None, "k"])
def test_an_id_of_other_work_is_refused_before_its_neighbours_are_stored(
    engine: AnyEngine, key: str | None
) -> None:
    client = Client(engine)
    job = new_job()
    client.submit([own(job)])
    neighbours = [own(new_job()), keyed("n"), plain()] if key else [own(new_job()), plain()]

    with pytest.raises(InvalidInput, match="belongs to another job"):
        client.submit([*neighbours, own(new_job('{"to":"bob"}', id=job.id), key)])

    assert [each.id for each in client.list_jobs()] == [job.id]
    assert client.submit([keyed("n")])[0].replay is False


def test_one_id_has_one_key(engine: AnyEngine) -> None:
    client = Client(engine)
    job = new_job()
    client.submit([own(job, "one")])

    with pytest.raises(InvalidInput, match="under the key 'one'"):
        client.submit([own(job, "two"), plain()])

    assert [each.id for each in client.list_jobs()] == [job.id]
    assert engine.run(store.key_owner("send", "two")) is None
    assert (
        client.submit([own(job, "one")])[0].replay is False
    )  # the same job under its own key: what a repeat gets


def test_an_id_that_was_submitted_without_a_key_gets_none_later(engine: AnyEngine) -> None:
    client = Client(engine)
    job = new_job()
    client.submit([own(job)])

    with pytest.raises(InvalidInput, match="without a key"):
        client.submit([own(job, "late")])

    assert engine.run(store.key_owner("send", "late")) is None


@pytest.mark.parametrize("key", [None, "k"])
def test_an_id_that_stands_twice_in_one_submit_for_the_same_work_is_one_job(
    engine: AnyEngine, key: str | None
) -> None:
    client = Client(engine)
    job = new_job()

    answers = client.submit([own(job, key), plain(), own(job, key)])

    assert [answers[0].id, answers[2].id] == [job.id] * 2
    assert [answer.replay for answer in answers] == [False, False, True]
    assert len(client.list_jobs()) == 2


@pytest.mark.parametrize("other", ["arguments", "key", "name"])
def test_an_id_that_stands_twice_for_different_work_is_refused_at_the_door(
    engine: AnyEngine, other: str
) -> None:
    client = Client(engine)
    job = new_job()
    second = {
        "arguments": own(new_job('{"to":"bob"}', id=job.id)),
        "key": own(job, "k"),
        "name": own(new_job(id=job.id, name="other")),
    }[other]

    with pytest.raises(InvalidInput, match="stands twice in one submit"):
        client.submit([own(job), plain(), second])

    assert client.list_jobs() == []


def test_due_jobs_wake_their_lanes_once_each_and_later_ones_do_not(engine: AnyEngine) -> None:
    flaky = Flaky(engine)
    jobs: list[NewJob] = [
        new_job(),
        new_job(),
        new_job(priority=5),
        new_job(queue="other", run_at_us=17_000),
        new_job(queue="later", delay_s=60),
        new_job(queue="later", run_at_us=10**17),
    ]

    Client(flaky).submit([Submission(job) for job in jobs])

    heard = [wakeup.decode(text) for text in flaky.woken]
    lanes = [(each.queue, each.priority) for each in heard if isinstance(each, wakeup.Queued)]
    assert sorted(lanes) == [("mail", 0), ("mail", 5), ("other", 0)]
    instants = {each.queue: each.run_at_us for each in heard if isinstance(each, wakeup.Queued)}
    assert instants == {"mail": None, "other": 17_000}, "by this host's clock a job might seem to come later"


def test_a_replay_wakes_nobody(engine: AnyEngine) -> None:
    Client(engine).submit([keyed("k")])
    flaky = Flaky(engine)

    Client(flaky).submit([keyed("k")])

    assert flaky.woken == []


def test_listeners_hear_how_many_were_submitted_and_replayed(engine: AnyEngine) -> None:
    telemetry = Telemetry()
    heard: list[object] = []
    telemetry.listen(lambda name, facts: heard.append((name, facts)))

    Client(engine, telemetry=telemetry).submit([keyed("k"), keyed("k2"), plain()])
    Client(engine, telemetry=telemetry).submit([keyed("k")])

    assert heard == [
        (Fact.SUBMITTED, {"job": "send", "queue": "mail", "count": 3, "replayed": 0, "replaced": 0}),
        (Fact.SUBMITTED, {"job": "send", "queue": "mail", "count": 1, "replayed": 1, "replaced": 0}),
    ]


def test_the_database_is_made_ready_before_the_first_use_and_once(engine: AnyEngine) -> None:
    calls: list[str] = []

    def ready() -> None:
        calls.append("ready")
        if len(calls) == 1:
            raise Unavailable("not yet")

    client = Client(engine, ready=ready)
    with pytest.raises(Unavailable):
        client.submit([plain()])

    client.submit([plain()])
    client.get(submitted(client, Submission(new_job(id=new_id())))[0])

    assert calls == ["ready", "ready"]
