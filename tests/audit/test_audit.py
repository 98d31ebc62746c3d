"""What people change by hand leaves an entry, in the transaction of the change; who changes nothing leaves none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fencerow import Client
from fencerow.audit.engine import AuditedEngine, changes
from fencerow.audit.operations import purge
from fencerow.core.errors import InvalidInput
from fencerow.core.model.person import Person, Via
from fencerow.core.store.tables import postgres_queries, sqlite_queries
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Queries
from fencerow.db.sqlite import SqliteEngine
from fencerow.schedules import definitions
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.jobs import new_job, register, submit
from tests.proof.history.test_verbs import WRITES
from tests.schedules.conftest import wanted

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine

MARA = Person("mara", Via.DASHBOARD, "192.0.2.7", "request-1")
ONE_DIALECT = {"begin_move", "forget_move"}  # jobs are moved from a file to a server, so the file is closed
NOT_BY_HAND = {
    "wake": "what the job waited for has come; of a signal, `send_signal` tells who sent it",
    **dict.fromkeys(("note_moved_back", "fall_back"), "limits and gates put jobs back, no person does"),
    **dict.fromkeys(("expire", "time_out", "give_turns", "give_alike"), "clocks and sweeps"),
    **dict.fromkeys(
        ("note_migration", "note_migrated", "take_apart"), "the ledger of migrations has who applied each"
    ),
    **dict.fromkeys(
        ("declare_limit", "put_schedules", "declare_program", "contradict_program"), "code declares it"
    ),
    **dict.fromkeys(("note_disowned", "disown"), "the sweep of jobs that nobody knows"),
    "begin_filling": "the audit log of the database that jobs come from tells it, and comes along",
    "take_turns_back": "follows a pause of a queue, which is told",
    "cancel_replaced": "a later submit cancels it",
    "put_flow": "a submit",
    "make_approval": "a program asks; who answers is told",
    "hold_flow_jobs": "goes with the revive of its flow, which is told",
}


def test_each_command_that_changes_something_leaves_an_entry(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_ACTOR", "mara")
    job, other = submit(engine, new_job(), new_job())
    worker = register(engine)
    lines = [
        ("jobs", "change", job, "--priority", "3"),
        ("jobs", "cancel", job, other, "--reason", "wrong letter"),
        ("jobs", "revive", job),
        ("jobs", "delete", other, "--yes"),
        ("queues", "pause", "mail", "--reason", "outage"),
        ("queues", "pause", "mail"),  # it is paused already
        ("queues", "resume", "mail"),
        ("shares", "set", "mail", "acme", "--weight", "3"),
        ("limits", "set", "queue:mail", "--at-once", "3"),
        ("limits", "set", "queue:mail", "--at-once", "4"),
        ("limits", "remove", "queue:mail"),
        ("tokens", "create", "deploy", "--scope", "read"),
        ("webhooks", "add", "crm", "https://example.com/hook"),
        ("webhooks", "rotate", "crm"),
        ("webhooks", "disable", "crm"),
        ("webhooks", "remove", "crm"),
        ("workers", "reclaim", worker, "--yes"),
    ]
    for words in lines:
        done = cli(*words)
        assert done.code == 0 or "Unknown" in done.err or words[1] == "pause", (words, done)
    token = cli("tokens", "--json").json[0]["id"]
    cli("tokens", "revoke", token)

    found = Client(engine).audit.entries()
    assert {(each.person, each.via) for each in found} == {("mara", "command")}
    assert [(each.kind, each.verb, sorted(each.targets)) for each in reversed(found)] == [
        ("job", "changed", [job]),
        ("job", "cancelled", sorted([job, other])),
        ("job", "revived", [job]),
        ("job", "deleted", [other]),
        ("queue", "paused", ["mail"]),
        ("queue", "resumed", ["mail"]),
        ("share", "weighed", ["mail/acme"]),
        ("limit", "made", ["queue:mail"]),
        ("limit", "changed", ["queue:mail"]),
        ("limit", "removed", ["queue:mail"]),
        ("API token", "made", ["deploy"]),
        ("webhook endpoint", "made", ["crm"]),
        ("webhook endpoint", "given a new secret", ["crm"]),
        ("webhook endpoint", "disabled", ["crm"]),
        ("webhook endpoint", "removed", ["crm"]),
        ("worker", "ended", [worker]),
        ("API token", "revoked", [token]),
    ]
    assert found[-2].detail == {"reason": "wrong letter"}
    shown = cli("audit", "--kind", "queue").out
    assert "queue mail paused" in shown and "reason: outage" in shown and "limit" not in shown


def test_a_user_whose_name_is_no_text_is_told_as_far_as_it_is(
    cli: Cli, engine: AnyEngine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FENCEROW_ACTOR", raising=False)
    monkeypatch.setenv("LOGNAME", "m\udcffx")  # a byte that is no UTF-8

    assert cli("queues", "pause", "mail").code == 0
    (entry,) = Client(engine).audit.entries()
    assert entry.person.startswith("m\ufffdx@")


def test_an_entry_and_its_change_are_there_together_or_not_at_all(engine: AnyEngine) -> None:
    nobody = Client(AuditedEngine(engine, Person("", Via.HTTP)), actor="mara")
    somebody = Client(AuditedEngine(engine, MARA), actor="mara")

    with pytest.raises(Exception, match=r"(?i)check"):  # an entry without a person cannot be written
        nobody.pause_queue("mail")
    assert somebody.paused_queues() == [] and somebody.audit.entries() == []

    assert somebody.pause_queue("mail")
    (entry,) = somebody.audit.entries()
    assert (entry.person, entry.via, entry.address, entry.request_id) == (
        "mara",
        "dashboard",
        "192.0.2.7",
        "request-1",
    )


def test_an_act_on_a_schedule_is_one_entry_however_many_parts_it_takes(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "READ_ROWS", 2)
    for entity in "abcde":
        engine.run(definitions.put_one(wanted("report", entity), actor="mara"))
    audited = AuditedEngine(engine, MARA)

    audited.run(definitions.pause("report", None, actor="mara", reason="outage"))
    audited.run(definitions.resume("report", None))
    audited.run(definitions.remove("report", None))

    found = [(each.verb, each.targets) for each in Client(engine).audit.entries()]
    assert found == [("removed", ["report"]), ("resumed", ["report"]), ("paused", ["report"])]


async def test_it_is_read_by_pages_and_filters_and_kept_for_its_time(engine: AnyEngine) -> None:
    client = Client(AuditedEngine(engine, MARA), actor="mara")
    for queue in ("a", "b", "c"):
        await client.apause_queue(queue)
    newest, *_ = first = await client.audit.aentries(limit=2)

    assert [each.targets for each in first] == [["c"], ["b"]]
    assert [each.targets for each in await client.audit.aentries(before=first[-1].id)] == [["a"]]
    assert await client.audit.aentries(target="c", kind="queue", person="mara") == [newest]
    assert await client.audit.aentries(since=datetime.now(UTC) + timedelta(days=1)) == []
    for wrong in ({"limit": 0}, {"before": True}, {"since": datetime(2026, 1, 1)}, {"kind": ""}):
        with pytest.raises(InvalidInput):
            await client.audit.aentries(**wrong)

    assert await engine.arun(purge(age_s=3600.0, limit=10)) == 0
    assert await engine.arun(purge(age_s=-1.0, limit=10)) == 3


@pytest.mark.parametrize("queries", [postgres_queries(), sqlite_queries()], ids=["postgres", "sqlite"])
def test_every_statement_that_names_an_actor_is_told_or_is_no_persons(queries: Queries) -> None:
    there = dict(queries.items())
    named = {
        name
        for name, query in there.items()
        if "actor" in query.parameters and any(WRITES.search(text) for text in query.statements)
    }

    assert named - changes().keys() - NOT_BY_HAND.keys() == set()
    for change in changes().values():
        if change.statement not in there:
            assert change.statement in ONE_DIALECT
            continue
        known = set(there[change.statement].parameters)
        assert {*change.shown, *((change.target,) if change.target else ())} <= known, change
