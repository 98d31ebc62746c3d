"""The bench measures on scratch tables, leaves nothing behind, and refuses where it would do harm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fencerow import Config
from fencerow.bench.figure import Figure
from fencerow.bench.place import BenchDatabase, private_sqlite, scratch
from fencerow.bench.run import QUESTIONS, run
from fencerow.bench.sizes import Sizes
from fencerow.cli.main import run as command
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import InvalidInput
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE, postgres_engine
from tests.house.tree import ROOT
from tests.kit.jobs import register

TINY = Sizes(
    drain_jobs=300,
    drain_rounds=1,
    submits_single=5,
    submits_concurrent=200,
    submits_bulk=200,
    latencies=3,
    claims=2,
    backlog_jobs=2_000,
    finished_jobs=500,
    tomorrow_jobs=500,
    snapshot_jobs=300,
    idle_s=0.2,
    settle_s=0.2,
    in_flight=20,
)
EVERYWHERE = {"one worker process", "in bulk", "submit to start, idle worker, p99", "claim, backlog 2,000"}


@pytest.fixture
def users(server: PostgresServer, _template: str) -> Iterator[PostgresEngine]:
    """A user's own database, with job tables in it, where the role may make schemas."""
    server.create_database("users_own", template=_template)
    with server.connect("users_own") as connection:
        connection.execute(f'GRANT CREATE ON DATABASE "users_own" TO "{ROLE}"')
    engine = postgres_engine(server.conninfo("users_own", ROLE))
    yield engine
    engine.close()
    server.drop_database("users_own")


def schemas(engine: PostgresEngine) -> list[tuple[str]]:
    with psycopg.connect(engine.conninfo) as connection:
        return connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1"
        ).fetchall()


@pytest.mark.prove
def test_every_question_is_answered_on_the_users_server_and_nothing_stays(users: PostgresEngine) -> None:
    before = schemas(users)
    found = list(run([scratch(Config(url=users.conninfo))], TINY, tuple(QUESTIONS)))

    assert {figure.what for _, figure in found} >= EVERYWHERE
    assert all(figure.ours > 0 for _, figure in found if figure.question != "idle")
    assert any("old snapshot held" in figure.what for _, figure in found)
    assert schemas(users) == before


@pytest.mark.prove
def test_every_question_is_answered_on_a_file_and_nothing_stays(tmp_path: Path) -> None:
    found = list(run([private_sqlite(tmp_path)], TINY, tuple(QUESTIONS)))

    assert {figure.what for _, figure in found} >= EVERYWHERE
    assert list(tmp_path.iterdir()) == []


def test_a_measurement_that_breaks_leaves_nothing_either(users: PostgresEngine) -> None:
    before = schemas(users)
    with pytest.raises(ZeroDivisionError), scratch(Config(url=users.conninfo)) as place:
        assert len(schemas(users)) == len(before) + 1
        _break(place)
    assert schemas(users) == before


def _break(place: BenchDatabase) -> None:
    raise ZeroDivisionError(place.kind)


def test_it_refuses_where_workers_are_at_work_unless_forced(users: PostgresEngine) -> None:
    register(users)
    config = Config(url=users.conninfo)
    with pytest.raises(InvalidInput, match="1 workers are at work"), scratch(config):
        pass
    with scratch(config, force=True) as place:
        assert place.config.schema != users.schema


def test_it_refuses_a_role_that_may_make_no_schema(server: PostgresServer, users: PostgresEngine) -> None:
    with server.connect("users_own") as connection:
        connection.execute(f'REVOKE CREATE ON DATABASE "users_own" FROM "{ROLE}"')
    with pytest.raises(InvalidInput, match="may make no schema"), scratch(Config(url=users.conninfo)):
        pass


def test_the_command_prints_and_keeps_its_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "evidence.json"

    code = command(["bench", "submit", "--quick", "--engine", "sqlite", "--json", "--save", str(kept)])

    printed = json.loads(capsys.readouterr().out)
    assert code == 0
    assert printed == json.loads(kept.read_text())
    assert {figure["question"] for figure in printed["figures"]} == {"submit"}
    assert all(
        figure["ratio"] > 0 and figure["database"].startswith("SQLite") for figure in printed["figures"]
    )
    assert {"machine", "python", "fencerow", "commit", "command", "load", "at"} <= printed.keys()


def test_each_row_is_told_beside_that_of_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = BenchDatabase("sqlite", Config(url="sqlite:///unused.db"), "SQLite 3.51.3, synchronous=FULL")
    found = [
        (
            place,
            Figure("submit", "one at a time", 30.0, "jobs/s", 40.0),
        ),  # 0.75, on a machine a tenth as fast
        (place, Figure("idle", "CPU of an idle worker", 0.1, "s/min")),
        (place, Figure("drain", "one worker process", 9.0, "jobs/s", 9.0)),
    ]
    earlier = [("submit", "one at a time", 100.0, 0.5), ("idle", "CPU of an idle worker", 0.2, None)]
    rows = [
        {"database": "SQLite 3.40.1", "question": question, "what": what, "ours": ours, "ratio": ratio}
        for question, what, ours, ratio in earlier
    ]
    file = tmp_path / "earlier.json"
    file.write_text(json.dumps({"at": "then", "commit": "abc", "machine": "another", "figures": rows}))
    monkeypatch.setattr("fencerow.cli.bench.run", lambda *_: iter(found))

    assert command(["bench", "--engine", "sqlite", "--beside", str(file), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(each["then"], each["times"]) for each in printed["figures"]] == [
        (0.5, 1.5),
        (0.2, 0.5),
        (None, None),
    ]
    assert printed["earlier"] == "then, commit abc, another"
    assert command(["bench", "--engine", "sqlite", "--beside", str(file)]) == 0
    assert "0.5, now 1.50 x" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", '{"figures": []}'])
def test_what_is_no_evidence_is_refused_before_anything_is_measured(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "earlier.json"
    file.write_text(text)
    assert command(["bench", "--engine", "sqlite", "--beside", str(file)]) == 2
    assert "is no evidence of a bench" in capsys.readouterr().err


def test_a_url_names_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["bench", "--url", "postgresql://nowhere.invalid/x", "--engine", "sqlite"]) == 2
    assert "the URL names the engine" in capsys.readouterr().err


def test_the_workers_own_python_is_measured_without_a_database() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "python_per_job.py"), "200", "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"[\d.]+ us a job at best", done.stdout)
