"""`fencerow output`: texts as they are, parts told apart, and what follows an offset."""

from __future__ import annotations

import json

import pytest

from fencerow.core.store import store
from fencerow.output import storing
from fencerow.output.model import ChunkGroup, offset_of
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.jobs import AnyEngine, claim, register, running

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

pytestmark = pytest.mark.usefixtures("url")


def test_the_output_is_printed_as_it_was_emitted(engine: AnyEngine, cli: Cli) -> None:
    claimed = running(engine, first := register(engine))
    emit(engine, claimed.id, first, 1, '["Hello ","wor\\u001b[2J"]', 2)
    back = store.Requeue(id=claimed.id, attempt=1, kind="released")
    assert engine.run(store.requeue([back], holder=first))
    second = register(engine)
    assert claim(engine, second)
    emit(engine, claimed.id, second, 2, '["Hello\\n",{"json":{"a":1}}]', 2)

    shown = cli("output", claimed.id)
    assert shown.out.startswith("Hello wor") and shown.out.endswith('Hello\n{"a":1}\n')
    assert "\x1b" not in shown.out, "what a job emits moves no cursor"
    assert "(attempt 2)" in shown.err
    (last,) = cli("output", claimed.id, "--after", str(offset_of(2, 1)), "--json").out.splitlines()
    assert json.loads(last)["data"] == {"a": 1}


def emit(engine: AnyEngine, job_id: str, holder: str, attempt: int, data: str, chunks: int) -> None:
    group = ChunkGroup(last=offset_of(attempt, chunks), attempt=attempt, chunks=chunks, data=data)
    assert engine.run(storing.write(job_id, group, holder=holder))
