"""What a person is asked by an address: answered once, by nobody else, and all or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow import Client, Job
from fencerow.core.store import store
from fencerow.errors import ApprovalOver, ApprovalUnknown, InvalidInput, JobNotFound, SignalRefused
from fencerow.steps import Approval, approvals, memory
from fencerow.steps.approvals import answer_approval, answering, asked, ticket_of
from fencerow.steps.asking import answer_of
from fencerow.steps.memory import Fencing, Waited, Waiting
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import working
from tests.kit.jobs import AnyEngine, read, register, running

AT = "https://jobs.example.com/"


def ask(engine: AnyEngine, job_id: str, **more: float) -> Approval:
    return Client(engine).approval(job_id, "approved", "Pay 500 EUR?", base_url=AT, **more)


def text(approval: Approval) -> str:
    assert approval.address.startswith("https://jobs.example.com/v1/approvals/")
    return approval.address.rpartition("/")[2]


def answer(engine: AnyEngine, address: str, *, yes: bool = True) -> None:
    Client(engine).run(answering(ticket_of(address), yes=yes, actor="an address"))


async def test_a_job_waits_for_the_answer_of_a_person(engine: AnyEngine) -> None:
    client, made = Client(engine), []

    async def pay(job: Job) -> bool:
        async def send(job_id: str) -> None:
            made.append(await client.aapproval(job_id, "approved", "Pay?", base_url=AT))

        await job.step("ask", send, job.id)
        found = await job.wait_for("approved", timeout_s=600)
        return bool(found["yes"])

    async with working(engine, pay) as stage:
        job_id = await stage.submit("pay")
        await stage.heard.wait("suspended", job_id=job_id)
        await client.arun(answering(ticket_of(text(made[0])), yes=True, actor="an address"))
        job = await stage.ended(job_id)

    assert (job.result, job.attempt) == (True, 2)
    (sent,) = await client.asignals(job_id)
    assert (sent.sent_by, sent.taken_as) == ("an address", "signal approved")


def test_an_address_is_used_once_and_looking_uses_nothing(engine: AnyEngine) -> None:
    job = running(engine, register(engine))
    address = text(ask(engine, job.id))

    for _ in range(3):
        found = engine.run(asked(ticket_of(address)))
        assert (found.asks, found.over) == ("Pay 500 EUR?", None)
    answer(engine, address, yes=False)
    with pytest.raises(ApprovalOver, match="answered before with no"):
        answer(engine, address, yes=True)

    (sent,) = Client(engine).signals(job.id)
    assert sent.data["yes"] is False


def test_of_two_addresses_for_one_wait_one_answer_counts(engine: AnyEngine) -> None:
    job = running(engine, register(engine))
    first, second = text(ask(engine, job.id)), text(ask(engine, job.id))

    answer(engine, second)

    with pytest.raises(ApprovalOver, match="answered before"):
        answer(engine, first, yes=False)
    assert len(Client(engine).signals(job.id)) == 1


def test_a_job_that_goes_on_from_before_an_answer_can_be_answered_again(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    answer(engine, text(ask(engine, job.id)), yes=False)
    waiting = Waiting(name="signal approved", seq=1, beside=False, signal="approved")
    assert engine.run(memory.wait(Fencing(job.id, holder, job.attempt), waiting)) is not None
    assert engine.run(store.fail([store.Failure(job.id, job.attempt, '{"type":"Boom"}')], holder=holder))
    client = Client(engine)

    assert client.revive_from(job.id, "signal approved") == ["signal approved"]
    answer(engine, text(ask(engine, job.id)), yes=True)

    assert [each.data["yes"] for each in client.signals(job.id)] == [True]


def test_who_comes_too_late_changes_nothing(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = running(engine, holder := register(engine))
    expired, ended = text(ask(engine, job.id, expires_s=60)), text(ask(engine, job.id, expires_s=600))
    clock.advance(61)

    with pytest.raises(ApprovalOver, match="expired"):
        answer(engine, expired)
    assert engine.run(store.fail([store.Failure(job.id, job.attempt, '{"type":"Boom"}')], holder=holder))
    with pytest.raises(ApprovalOver, match="takes no answer"):
        answer(engine, ended)

    assert Client(engine).signals(job.id) == []
    assert engine.run(asked(ticket_of(ended))).over == "its job has ended", "it is not marked as used"


def test_an_address_that_was_not_given_is_no_address(engine: AnyEngine) -> None:
    job = running(engine, register(engine))
    address = text(ask(engine, job.id))
    other = "A" if address[30] != "A" else "B"

    for wrong in ("", "x", address[:-1], address + "AAAA", f"{address[:30]}{other}{address[31:]}", "é" * 64):
        with pytest.raises(ApprovalUnknown):
            engine.run(answer_approval(ticket_of(wrong), yes=True, actor=None))
    assert engine.run(asked(ticket_of(address))).over is None


def test_its_secret_is_kept_nowhere(engine: AnyEngine) -> None:
    approval = ask(engine, running(engine, register(engine)).id)

    assert text(approval) not in repr(approval)
    table = "fencerow_job_approvals" if engine.dialect == "sqlite" else "fencerow.job_approvals"
    with engine.session() as session:
        (row,) = session.connection.execute(f"SELECT * FROM {table}").fetchall()
    values = row.values() if isinstance(row, dict) else row
    assert all(text(approval)[22:] not in str(value) for value in values)


def test_what_cannot_be_asked_is_refused(engine: AnyEngine) -> None:
    client, job = Client(engine), running(engine, holder := register(engine))

    for bad in ({"base_url": "jobs"}, {"base_url": AT, "expires_s": 0}):
        with pytest.raises(InvalidInput):
            client.approval(job.id, "a", "Pay?", **bad)
    with pytest.raises(InvalidInput):
        client.approval(job.id, "", "Pay?", base_url=AT)
    with pytest.raises(JobNotFound):
        ask(engine, "0198c5a0-0000-7000-8000-000000000000")
    engine.run(store.fail([store.Failure(job.id, job.attempt, '{"type":"Boom"}')], holder=holder))
    with pytest.raises(SignalRefused, match="it is failed"):
        ask(engine, job.id)


def test_a_job_is_asked_a_bounded_number_of_things(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "APPROVALS_MAX", 2)
    job = running(engine, register(engine))
    for _ in range(2):
        ask(engine, job.id)

    with pytest.raises(SignalRefused, match="nothing more can be asked"):
        ask(engine, job.id)


def test_it_goes_with_its_job(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    address = text(ask(engine, job.id))
    engine.run(store.fail([store.Failure(job.id, job.attempt, '{"type":"Boom"}')], holder=holder))
    assert read(engine, job.id).state == "failed"
    Client(engine).delete(job.id)

    assert engine.run(memory.purge(memory.NOWHERE, limit=10)).gone == 1
    with pytest.raises(ApprovalUnknown):
        engine.run(asked(ticket_of(address)))


async def test_one_call_asks_a_person_and_waits(engine: AnyEngine) -> None:
    made: list[Approval] = []

    async def pay(job: Job) -> list[object]:
        async def tell(approval: Approval) -> None:
            made.append(approval)

        answer = await job.wait_for_approval("Pay?", tell, base_url=AT, timeout_s=600)
        return [answer.yes, answer.by, answer.comment]

    async with working(engine, pay) as stage:
        job_id = await stage.submit("pay")
        await stage.heard.wait("suspended", job_id=job_id)
        await Client(engine).aanswer_approval(made[0].address, yes=True, by="Ada", comment="fine\nby me")
        job = await stage.ended(job_id)

    assert job.result == [True, "Ada", "fine\nby me"]
    assert len(made) == 1
    kept = await engine.arun(memory.steps_of(job_id))
    assert [each.name for each in kept] == ["ask approval", "signal approval"]
    assert text(made[0]) not in str(kept)


def test_an_address_answers_no_longer_than_the_job_waits(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = running(engine, holder := register(engine))
    address = text(ask(engine, job.id, expires_s=600))
    over = Waiting(name="w", seq=1, beside=False, signal="approved", until_us=1, over='{"timed_out":true}')

    assert engine.run(memory.wait(Fencing(job.id, holder, job.attempt), over)) == Waited('{"timed_out":true}')

    with pytest.raises(ApprovalOver, match="waits for it no longer"):
        answer(engine, address)
    answer(engine, text(ask(engine, job.id)))  # what is asked since then is answered


def test_what_a_person_writes_is_bounded(engine: AnyEngine) -> None:
    address = ask(engine, running(engine, register(engine)).id).address
    wrong: tuple[dict[str, Any], ...] = ({"by": "a" * 201}, {"by": "a\nb"}, {"comment": "a" * 2_001})

    for each in wrong:
        with pytest.raises(InvalidInput):
            Client(engine).answer_approval(address, yes=True, **each)
    with pytest.raises(InvalidInput, match="no answer"):
        answer_of({"by": "ada"}, "approval")
    assert engine.run(asked(ticket_of(address.rpartition("/")[2]))).over is None
