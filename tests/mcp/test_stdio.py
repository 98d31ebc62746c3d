"""An assistant speaks with `fencerow mcp` by the protocol, over real pipes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fencerow import Client
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from tests.kit.jobs import new_job, submit

sdk = pytest.importorskip("mcp", reason="the extra mcp is not installed")


@pytest.fixture
def file(migrated_path: Path) -> SqliteEngine:
    return SqliteEngine(migrated_path, store.sqlite_queries())


@asynccontextmanager
async def assistant(file: SqliteEngine, *words: str) -> AsyncIterator[Any]:
    kept = ("PATH", "HOME", "PYTHONPATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ} | {"FENCEROW_ACTOR": "mara"}
    server = sdk.StdioServerParameters(
        command=sys.executable,
        args=["-m", "fencerow", "mcp", "--url", f"sqlite:///{file.path}", *words],
        env=environment,
    )
    async with sdk.Client(server) as client:
        yield client


async def asked(client: Any, name: str, **arguments: Any) -> Any:
    answer = await client.call_tool(name, arguments)
    text = answer.content[0].text
    return text if answer.is_error else json.loads(text)


async def names(client: Any) -> Sequence[str]:
    return sorted(each.name for each in (await client.list_tools()).tools)


async def test_without_leave_an_assistant_only_looks_and_sees_no_secrets(file: SqliteEngine) -> None:
    args = '{"to":"ada","password":"hush","url":"postgresql://ada:hush@db/shop"}'
    (job,) = submit(file, new_job(args, headers='{"authorization":"Bearer hush"}'))

    async with assistant(file) as client:
        assert await names(client) == ["doctor", "list_jobs", "queues", "show_job", "why"]
        listed = await asked(client, "list_jobs", state="queued")
        shown = await asked(client, "show_job", job_id=job)
        why = await asked(client, "why", job_id=job)
        queues = await asked(client, "queues")
        doctor = await asked(client, "doctor")
        refused = await asked(client, "show_job", job_id="ffff")

    assert [each["id"] for each in listed["jobs"]] == [job]
    assert "args" not in listed["jobs"][0]
    assert shown["job"]["args"]["to"] == "ada"
    assert "hush" not in json.dumps([listed, shown, why, queues, doctor])
    assert why["state"] == "queued"
    assert queues["queues"][0]["queue"] == "mail"
    assert doctor["findings"]
    assert "FR-" in refused
    assert (await Client(file).aget(job)).state == "queued"


@pytest.mark.prove  # a start of the SDK costs seconds
async def test_what_is_allowed_is_done_once_and_stands_in_the_audit_log(file: SqliteEngine) -> None:
    job, other = submit(file, new_job(), new_job())
    file.run(store.cancel(other, actor="ada"))

    async with assistant(file, "--allow", "cancel", "--allow", "retry", "--allow", "approve") as client:
        assert {"cancel", "retry", "approve"} <= set(await names(client))
        approved = await asked(client, "approve", job_id=job, signal="paid", yes=True)
        cancelled = await asked(client, "cancel", job_id=job, reason="wrong letter")
        again = await asked(client, "cancel", job_id=job, reason="wrong letter")
        retried = await asked(client, "retry", job_id=other, reason="was right")

    assert approved["answer"] is True
    assert cancelled == {"id": job, "answer": "cancelled"}
    assert "FR-" in again
    assert retried == {"id": other, "state": "queued"}
    entries = await Client(file).audit.aentries()
    assert [(each.verb, each.person) for each in entries] == [
        (verb, "mara by mcp") for verb in ("revived", "cancelled", "signalled")
    ]
    assert entries[1].detail["reason"] == "wrong letter"
