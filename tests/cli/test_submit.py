"""submit: what is typed becomes a job of the application, or is refused with nothing stored."""

from __future__ import annotations

import io

import pytest

from fencerow import Client
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit
from fencerow.operators import looking
from tests.cli.conftest import Cli, command
from tests.kit import jobs

AnyEngine = SqliteEngine | PostgresEngine


@pytest.mark.parametrize(
    ("words", "args"),
    [
        (["to=ada"], {"to": "ada"}),
        (["to=ada", "n=3"], {"to": "ada", "n": 3}),
        (["to=a=b c"], {"to": "a=b c"}),
        (["to=", "n=-1"], {"to": "", "n": -1}),
        (['{"to": "ada", "n": 3}'], {"to": "ada", "n": 3}),
    ],
)
def test_arguments_are_json_or_pairs(
    cli: Cli, url: str, engine: AnyEngine, shop: str, words: list[str], args: object
) -> None:
    result = cli("-A", shop, "submit", "send", *words)

    assert result.code == 0
    job_id = result.out.strip()
    assert engine.run(store.read([job_id]))[job_id].args == args


def test_arguments_may_come_on_the_standard_input(
    cli: Cli, url: str, engine: AnyEngine, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"to": "ada"}'))

    assert cli("submit", "send", "-", "-A", shop).code == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["sned", "to=x"], "FR-202"),
        (["send"], "FR-203"),
        (["send", "to=x", "nonsense=1"], "FR-203"),
        (["send", "to=x", "n=many"], "FR-203"),
        (["send", "to=NaN"], "FR-205"),
        (["send", '{"to": Infinity}'], "FR-205"),
        (["send", '{"to": "a\\u0000b"}'], "FR-205"),
        (["send", '{"to": '], "FR-201"),
        (["send", '["ada"]'], "FR-201"),
        (["send", '{"to": "x", "to": "y"}'], "FR-201"),
        (["send", "[" * 100_000], "FR-201"),
        (["send", "ada"], "FR-201"),
        (["send", "to=x", "to=y"], "FR-201"),
        (["send", "to=x", "--priority", "101"], "FR-201"),
        (["send", "to=x", "--delay", "nan"], "FR-201"),
        (["send", "to=x", "--delay", "-1"], "FR-201"),
        (["send", "to=x", "--tag", "a\nb"], "FR-201"),
        (["send", "to=x", "--id", "7"], "FR-201"),
        (["send", "to=x", "--exclusive", ""], "FR-201"),
        (["send", "to=x", "--share", "a\nb"], "FR-201"),
        (["send", "to=x", "--unique", ""], "FR-201"),
        (["send", "to=x", "--limit", "nobody"], "FR-791"),
        (["send", "to=" + "x" * 2_000_000], "FR-204"),
    ],
)
def test_a_refusal_stores_nothing(
    cli: Cli, url: str, engine: AnyEngine, shop: str, words: list[str], error: str
) -> None:
    result = cli("submit", "-A", shop, *words)

    assert (result.code, result.error) == (2, error)
    assert engine.run(looking.counts()) == []


def test_options_reach_the_job(cli: Cli, url: str, engine: AnyEngine, shop: str) -> None:
    options = ["--queue", "q", "--delay", "60", "--priority", "7", "--attempts-max", "9", "--timeout", "5"]
    options += ["--tag", "a", "--tag", "b", "--key", "k"]

    document = cli("submit", "send", "to=x", "-A", shop, "--json", *options).json
    job = engine.run(store.read([document["id"]]))[document["id"]]

    assert (job.queue, job.priority, job.attempts_max, job.tags) == ("q", 7, 9, ["a", "b"])
    assert (job.timeout_s, job.key, job.scope) == (5.0, "k", "send")
    assert job.run_at_us - job.submitted_at_us >= 59_000_000


def test_turns_are_given_at_the_submit(cli: Cli, url: str, engine: AnyEngine, shop: str) -> None:
    for name in ("one", "two"):
        Client(engine).limits.define(Limit(name, at_once=1))
    turns = ["--exclusive", "key", "--limit", "one", "--limit", "two", "--share", "ada", "--unique", "u"]

    first = cli("submit", "send", "to=x", "-A", shop, "--json", *turns).json
    again = cli("submit", "send", "to=y", "-A", shop, "--json", *turns).json
    job = engine.run(store.read([first["id"]]))[first["id"]]

    assert (job.exclusive, job.limits, job.share) == ("key", ["one", "two"], "ada")
    assert (again["id"], again["answer"]) == (first["id"], "existing")


def test_one_key_is_one_job_and_another_payload_is_refused(
    cli: Cli, url: str, engine: AnyEngine, shop: str
) -> None:
    first = cli("submit", "send", "to=x", "--key", "k", "-A", shop, "--json").json
    again = cli("submit", "send", "to=x", "--key", "k", "-A", shop, "--json").json
    other = cli("submit", "send", "to=y", "--key", "k", "-A", shop)

    assert (again["id"], first["replay"], again["replay"]) == (first["id"], False, True)
    assert (other.code, other.error) == (2, "FR-206")
    assert sum(count.jobs for count in engine.run(looking.counts())) == 1


def test_waiting_prints_the_result_or_why_there_is_none(
    cli: Cli, url: str, engine: AnyEngine, shop: str
) -> None:
    worker = command("worker", "-A", shop)
    try:
        done = cli("submit", "send", "to=ada", "--wait", "-A", shop)
        failed = cli("submit", "fail", "text=no luck", "--wait", "-A", shop)
        document = cli("submit", "fail", "text=no luck", "--wait", "--json", "-A", shop)
    finally:
        worker.terminate()
        worker.communicate(timeout=30)

    assert (done.code, done.out) == (0, '{"to": "ada", "n": 1}\n')
    assert failed.code == 5
    assert "FR-305" in failed.err
    assert "no luck" in failed.err
    assert (document.code, document.json["state"]) == (5, "failed")


def test_waiting_has_an_end(cli: Cli, url: str, engine: AnyEngine, shop: str) -> None:
    result = cli("submit", "send", "to=x", "--wait-max", "0.05", "-A", shop)

    assert result.code == 6
    assert "FR-304" in result.err
    assert len(engine.run(looking.list_jobs())) == 1, "the job goes on"


def test_the_application_may_be_named_by_the_environment(
    cli: Cli, url: str, engine: AnyEngine, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_APP", shop)

    assert cli("submit", "send", "to=x").code == 0
    assert len(engine.run(looking.list_jobs(queue=jobs.QUEUE))) == 1
