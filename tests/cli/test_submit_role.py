"""The role that submits, with exactly what is printed for it: it submits in every way, and reads and writes no end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from fencerow import App
from fencerow.app import Unique
from fencerow.cli import grants
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.errors import DatabaseError
from fencerow.flows import Flow
from fencerow.testing import drain
from fencerow.testing.postgres import PostgresServer
from tests.kit.databases import Superuser
from tests.kit.jobs import new_job

BESIDES = {
    "plain": (),
    "keyed": grants.KEYED,
    "repeats": grants.KEYED + grants.REPEATED,
    "unique": grants.UNIQUE,
    "both": grants.KEYED + grants.UNIQUE,
    "flows": grants.FLOWS,
    "all": grants.KEYED + grants.REPEATED + grants.UNIQUE,
}
FORBIDDEN = {
    "read a result": "SELECT result FROM fencerow.handovers",
    "read an error": "SELECT error FROM fencerow.handovers",
    "read an end": "SELECT result FROM fencerow.finished_jobs",
    "read an end of all": "SELECT result FROM fencerow.all_jobs",
    "read why one failed": "SELECT error FROM fencerow.all_jobs",
    "forge a result": "UPDATE fencerow.handovers SET result = '1'",
    "forge an error": "UPDATE fencerow.handovers SET error = '{}'",
    "forge an end": "UPDATE fencerow.handovers SET state = 'failed'",
    "insert an end": "INSERT INTO fencerow.handovers (job_id, result) VALUES (gen_random_uuid(), '1')",
    "confirm": "UPDATE fencerow.handovers SET confirmed_at = now()",
    "take": "UPDATE fencerow.handovers SET holder = job_id",
    "forget": "DELETE FROM fencerow.handovers",
}
OF_FLOWS = {
    "read a result": "SELECT result FROM fencerow.flow_jobs",
    "forge an end": "UPDATE fencerow.flow_jobs SET state = 'succeeded'",
    "insert an end": "INSERT INTO fencerow.flow_jobs (job_id, state) VALUES (gen_random_uuid(), 'failed')",
    "end a flow": "UPDATE fencerow.flows SET ended_at = now()",
    "read a callback": "SELECT job FROM fencerow.flow_callbacks",
    "forget": "DELETE FROM fencerow.flow_edges",
}
ALL, KEYED, UNIQUE = set(BESIDES), {"keyed", "repeats", "both", "all"}, {"unique", "both", "all"}
REPEATS = {"repeats", "all"}
Submit = Callable[[Any], object]
# Who may do it, the options of the job, and how it is submitted.
WAYS: dict[str, tuple[set[str], dict[str, Any], Submit]] = {
    "plain": (ALL, {}, lambda job: job.submit("a")),
    "in line": (ALL, {"handover": "bot"}, lambda job: job.submit("a")),
    "bulk": (ALL, {}, lambda job: job.submit_many([job.call("a")] * 2)),
    "exclusive": (ALL, {"exclusive": "k"}, lambda job: job.submit("a")),
    "with a label": (ALL, {"affinity": "gpu"}, lambda job: job.submit("a")),
    "key": (KEYED, {"handover": "bot"}, lambda job: [job.using(key="k").submit("a") for _ in range(2)]),
    "own id": (KEYED, {"handover": "bot"}, lambda job: job.using(id=new_id()).submit("a")),
    "own id again": (REPEATS, {}, lambda job: submit_again(job, new_id())),
    "unique own id": (KEYED & UNIQUE, {"unique": True}, lambda job: job.using(id=new_id()).submit("b")),
    "unique own id again": (
        REPEATS & UNIQUE,
        {"unique": True},
        lambda job: submit_again(job, new_id()),
    ),
    "unique": (UNIQUE, {"unique": True}, lambda job: [job.submit("a") for _ in range(2)]),
    "replace": (
        UNIQUE,
        {"unique": Unique("r", on_conflict="replace"), "handover": "bot"},
        lambda job: [job.submit("a") for _ in range(2)],
    ),
}


@pytest.fixture(scope="module")
def shared(server: PostgresServer, superuser: Superuser, _template: str) -> Iterator[str]:
    """A database for all of these roles, with the end of a job in a line."""
    superuser.make("submitters", _template)
    with App(server.conninfo("submitters", "app")) as app:
        app.job(handover="bot")(answer).submit()
        drain(app)
    yield "submitters"
    superuser.drop("submitters")


@pytest.fixture
def role_url(server: PostgresServer, shared: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The database as one of them sees it. What it has submitted is gone afterwards."""
    besides = request.param
    role = f"submitter_{besides}"
    with server.connect(shared) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        text = grants.grants("fencerow", worker="nobody", submit=role)
        for line in text.replace("-- GRANT", "GRANT").splitlines():
            if line in grants.filled(grants.SUBMIT + BESIDES[besides], "fencerow", role):
                connection.execute(line.encode())
        connection.commit()
        yield server.conninfo(shared, role)
        connection.execute(f"DELETE FROM fencerow.jobs; DROP OWNED BY {role}; DROP ROLE {role}".encode())


def note(text: str) -> None: ...


def answer() -> str:
    return "a secret"


def submit_again(job: Any, job_id: str) -> None:
    for _ in range(2):
        job.using(id=job_id).submit("a")


def is_refused(app: App, name: str, options: dict[str, Any], submit: Submit) -> bool:
    job: Any = app.job(name=name, **options)
    try:
        submit(job(note))
    except DatabaseError as error:
        return "permission denied" in str(error)
    return False


@pytest.mark.parametrize("role_url", ["keyed"], indirect=True)
def test_it_repeats_what_was_stored_though_the_answer_was_lost(role_url: str) -> None:
    one, other = new_job(), new_job()
    with App(role_url) as app:
        for jobs in ([one], [one, other]):
            assert app.client.engine.run(store.resubmit(jobs)) == [jobs[-1].id]


@pytest.mark.parametrize(("role_url", "besides"), [(each, each) for each in BESIDES], indirect=["role_url"])
def test_it_can_submit_as_is_printed_for_it_and_no_other_way(role_url: str, besides: str) -> None:
    with App(role_url) as app:
        refused = {
            name for name, (_, options, submit) in WAYS.items() if is_refused(app, name, options, submit)
        }

    assert refused == {name for name, (may, *_) in WAYS.items() if besides not in may}


@pytest.mark.parametrize("role_url", ["plain"], indirect=True)
def test_it_submits_too_where_it_may_not_read_when_something_came_again(
    role_url: str, server: PostgresServer, shared: str
) -> None:
    with server.connect(shared) as connection:
        connection.execute("REVOKE SELECT ON SEQUENCE fencerow.repeats_until FROM submitter_plain")
    with App(role_url) as app:
        refused = [name for name in ("plain", "bulk", "exclusive") if is_refused(app, name, *WAYS[name][1:])]

    assert refused == []


@pytest.mark.parametrize(("role_url", "may"), [("flows", True), ("all", False)], indirect=["role_url"])
def test_it_submits_flows_as_is_printed_for_it_and_ends_none(role_url: str, may: bool) -> None:
    with App(role_url) as app:
        job = app.job(name="flows")(note)

        def submitted(key: str) -> Flow:
            flow = app.flow("f", key=key)
            first = flow.add("first", job.call("a"))
            flow.add("behind", job.call("b"), needs=[first])
            flow.on_done(job.call("c"))
            return flow

        for _ in range(2):  # the second finds the first
            if may:
                submitted("k").submit()
            else:
                with pytest.raises(DatabaseError, match="permission denied"):
                    submitted("k").submit()
    with psycopg.connect(role_url, autocommit=True) as connection:
        assert not [what for what, text in OF_FLOWS.items() if may_do(connection, text)]


@pytest.mark.parametrize("role_url", ["all"], indirect=True)  # the others may do less
def test_it_reads_and_forges_no_end(role_url: str) -> None:
    with psycopg.connect(role_url, autocommit=True) as connection:
        allowed = [what for what, text in FORBIDDEN.items() if may_do(connection, text)]

    assert not allowed


def may_do(connection: psycopg.Connection[Any], text: str) -> bool:
    try:
        connection.execute(text.encode())
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True
