"""Jobs are listed, shown and moved, one by one or by filter, on both databases."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from fencerow.core.errors import Unavailable
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Procedure
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators import many
from tests.cli.conftest import Cli
from tests.kit import jobs

AnyEngine = SqliteEngine | PostgresEngine
EVIL = "\x1b[31mred\r\n\x9b2J\u202e"
SHOWN = "\\x1b[31mred\\r\\n\\x9b2J\\u202e"


def state_of(engine: AnyEngine, job_id: str) -> State:
    return engine.run(store.read([job_id]))[job_id].state


def fail_one(engine: AnyEngine, message: str = "no luck") -> str:
    job = jobs.running(engine)
    holder = engine.run(store.read([job.id]))[job.id].holder or ""
    error = f'{{"type":"ValueError","message":{jobs_json(message)}}}'
    engine.run(store.fail([store.Failure(job.id, job.attempt, error)], holder=holder))
    return job.id


def jobs_json(text: str) -> str:
    import json

    return json.dumps(text)


def test_a_list_is_one_json_document(cli: Cli, url: str, engine: AnyEngine) -> None:
    first, second = jobs.submit(engine, jobs.new_job()), jobs.submit(engine, jobs.new_job(queue="slow"))

    everything, filtered = (
        cli("jobs", "list", "--json").json,
        cli("jobs", "list", "--queue", "slow", "--json").json,
    )

    assert [job["id"] for job in everything] == [*second, *first], "the newest first"
    assert [job["id"] for job in filtered] == second
    assert everything[0]["state"] == "queued"
    assert {"queue", "name", "attempt", "run_at", "submitted_at"} <= everything[0].keys()


def test_each_filter_narrows(cli: Cli, url: str, engine: AnyEngine) -> None:
    jobs.submit(engine, jobs.new_job())
    (wanted,) = jobs.submit(
        engine,
        jobs.new_job(
            queue="q", name="other", tags='["a","b"]', metadata='{"n":17,"of":"ada"}', scope="s", key="k"
        ),
    )

    for words in (
        ["--queue", "q"],
        ["--name", "other"],
        ["--tag", "b"],
        ["--meta", "n=17"],
        ["--key", "k"],
        ["--scope", "s"],
    ):
        assert [job["id"] for job in cli("jobs", "list", *words, "--json").json] == [wanted]
    both = cli("jobs", "list", "--tag", "a", "--tag", "b", "--meta", "of=ada", "--meta", "n=17", "--json")
    assert [job["id"] for job in both.json] == [wanted]
    assert cli("jobs", "list", "--tag", "a", "--tag", "c", "--json").json == []
    assert cli("jobs", "list", "--meta", 'n="17"', "--json").json == []
    assert cli("jobs", "list", "--meta", "n").error == "FR-201"
    assert cli("jobs", "list", "--meta", "n=[1]").error == "FR-201"
    assert len(cli("jobs", "list", "--state", "queued", "--json").json) == 2
    assert cli("jobs", "list", "--state", "failed", "--json").json == []
    assert len(cli("jobs", "list", "--limit", "1", "--json").json) == 1
    assert len(cli("jobs", "list", "--before", wanted, "--json").json) == 1


def test_a_bulk_move_takes_labels(cli: Cli, url: str, engine: AnyEngine) -> None:
    (other,) = jobs.submit(engine, jobs.new_job(metadata='{"customer":18}'))
    (wanted,) = jobs.submit(engine, jobs.new_job(tags='["x"]', metadata='{"customer":17}'))

    counted = cli("jobs", "cancel", "--meta", "customer=17", "--dry-run", "--json")
    assert counted.json["jobs"] == 1
    assert cli("jobs", "cancel", "--meta", "customer=17", "--tag", "x", "--yes").code == 0
    states = {each["id"]: each["state"] for each in cli("jobs", "list", "--json").json}
    assert states == {wanted: "cancelled", other: "queued"}


def test_a_table_shows_no_control_character(cli: Cli, url: str, engine: AnyEngine) -> None:
    fail_one(engine, EVIL)
    (job_id,) = jobs.submit(engine, jobs.new_job(name=EVIL, queue=EVIL, tags=f"[{jobs_json(EVIL)}]"))

    for words in (["jobs", "list"], ["jobs", "show", job_id], ["queues"], ["why", job_id]):
        result = cli(*words)
        assert result.code == 0
        assert SHOWN in result.out
        assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(result.out)


def test_json_cannot_reach_the_terminal_either(cli: Cli, url: str, engine: AnyEngine) -> None:
    fail_one(engine, EVIL)

    result = cli("jobs", "list", "--json")

    assert result.out.isascii()
    assert result.json[0]["error"]["message"] == EVIL


def test_show_tells_the_job_its_timeline_log_and_error(cli: Cli, url: str, engine: AnyEngine) -> None:
    job_id = fail_one(engine)

    shown, document = cli("jobs", "show", job_id), cli("jobs", "show", job_id, "--json").json

    assert all(word in shown.out for word in ("failed", "no luck", "timeline", '{"to": "ada"}'))
    assert document["job"]["state"] == "failed"
    assert [event["kind"] for event in document["timeline"]][:2] == ["submitted", "claimed"]
    assert document["log"] == []


def test_revive_queues_a_finished_job_again(cli: Cli, url: str, engine: AnyEngine) -> None:
    job_id = fail_one(engine)

    result = cli("jobs", "revive", job_id, "--reason", "fixed")

    assert (result.code, result.out, result.err) == (0, f"{job_id}  queued\n", "")
    assert state_of(engine, job_id) is State.QUEUED
    assert cli("jobs", "revive", job_id).error == "FR-303"


def test_cancel_moves_what_is_queued_and_asks_what_runs(cli: Cli, url: str, engine: AnyEngine) -> None:
    running = jobs.running(engine).id
    (queued,) = jobs.submit(engine)

    result = cli("jobs", "cancel", queued, running)

    assert (result.code, result.out) == (0, f"{queued}  cancelled\n{running}  asked to stop\n")
    assert state_of(engine, queued) is State.CANCELLED
    assert state_of(engine, running) is State.RUNNING


def test_cancel_only_queued_leaves_what_runs(cli: Cli, url: str, engine: AnyEngine) -> None:
    running = jobs.running(engine).id

    result = cli("jobs", "cancel", running, "--only-queued")

    assert (result.code, result.error) == (1, "FR-303")


def test_delete_removes_finished_jobs_only(cli: Cli, url: str, engine: AnyEngine) -> None:
    finished, (queued,) = fail_one(engine), jobs.submit(engine)

    result = cli("jobs", "delete", finished, queued)

    assert (result.code, result.error) == (1, "FR-303")
    assert result.out == f"{finished}  deleted\n"
    assert state_of(engine, queued) is State.QUEUED
    assert engine.run(store.existing([finished])) == set()


@pytest.mark.parametrize("verb", ["revive", "cancel", "delete"])
def test_a_dry_run_shows_the_exact_count_and_changes_nothing(
    cli: Cli, url: str, engine: AnyEngine, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencerow.cli.filters.PAGE", 2)
    failed = [fail_one(engine) for _ in range(5)]
    queued = [jobs.submit(engine)[0] for _ in range(3)]
    expected = 3 if verb == "cancel" else 5

    dry = cli("jobs", verb, "--queue", "mail", "--dry-run", "--json").json
    states = [state_of(engine, job_id) for job_id in (*failed, *queued)]
    done = cli("jobs", verb, "--queue", "mail", "--json").json

    which = {*queued} if verb == "cancel" else {*failed}
    assert (dry["verb"], dry["dry_run"], dry["jobs"], {*dry["ids"]}) == (verb, True, expected, which)
    assert states == [State.FAILED] * 5 + [State.QUEUED] * 3
    assert done["jobs"] == expected
    assert len(done["outcomes"]) == expected


def test_a_state_from_which_the_move_is_illegal_is_refused(cli: Cli, url: str, engine: AnyEngine) -> None:
    jobs.running(engine)

    result = cli("jobs", "delete", "--state", "running")

    assert (result.code, result.error) == (2, "FR-201")


def test_a_person_at_a_terminal_is_asked(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job_id,) = jobs.submit(engine)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)

    refused = cli("jobs", "cancel", "--queue", "mail")
    kept = state_of(engine, job_id)
    agreed = cli("jobs", "cancel", "--queue", "mail", "--yes")

    assert (refused.code, kept) == (1, State.QUEUED)
    assert (agreed.code, state_of(engine, job_id)) == (0, State.CANCELLED)


def test_queues_are_listed_paused_and_resumed(cli: Cli, url: str, engine: AnyEngine) -> None:
    jobs.submit(engine)

    paused = cli("queues", "pause", "mail", "--reason", "moving house")
    again = cli("queues", "pause", "mail")
    (seen,) = cli("queues", "--json").json
    resumed = cli("queues", "resume", "mail")
    (after,) = cli("queues", "list", "--json").json

    assert [paused.out, again.out[:11], resumed.out] == [
        "mail is paused\n",
        "mail was pa",
        "mail is resumed\n",
    ]
    assert (seen["jobs"]["queued"], seen["paused"]["reason"]) == (1, "moving house")
    assert seen["oldest_due_s"] >= 0
    assert after["paused"] is None
    assert cli("queues", "resume", "mail").out == "mail was not paused\n"


def test_workers_are_listed_with_what_they_hold(cli: Cli, url: str, engine: AnyEngine) -> None:
    holder = jobs.register(engine)
    jobs.running(engine, holder)

    (seen,) = cli("workers", "--json").json
    table = cli("workers")

    assert (seen["id"], seen["state"], seen["held"]) == (holder, "alive", 1)
    assert holder in table.out
    assert cli("workers", "--state", "dead", "--json").json == []


def test_an_option_has_a_twin_in_the_environment(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        jobs.submit(engine)
    monkeypatch.setenv("FENCEROW_CLI_JOBS_LIST_LIMIT", "2")
    monkeypatch.setenv("FENCEROW_CLI_JSON", "1")

    assert len(cli("jobs", "list").json) == 2


def test_version_names_what_it_stands_on(cli: Cli) -> None:
    assert cli("version", "--json").json.keys() == {"fencerow", "python", "sqlite", "psycopg"}


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_leaves_whole_batches_and_says_how_many(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    queued = [jobs.submit(engine)[0] for _ in range(5)]
    monkeypatch.setattr(many, "BATCH", 2)
    real = many.moving
    before = signal.getsignal(signal.SIGINT)

    def interrupted(*words: Any) -> Procedure[None]:
        signal.raise_signal(signal.SIGINT)  # in the middle of the first batch
        return (yield from real(*words))

    monkeypatch.setattr(many, "moving", interrupted)

    result = cli("jobs", "cancel", "--queue", "mail", *(["--json"] if as_json else []))

    assert result.code == 130
    assert sorted(state_of(engine, each).value for each in queued) == ["cancelled"] * 2 + ["queued"] * 3
    assert "3 jobs were not reached" in result.err
    if as_json:
        assert (result.json["jobs"], result.json["not_reached"]) == (2, 3)
    else:
        assert result.out == "2 jobs: cancel done\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_what_was_done_is_told_when_the_database_goes_away(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        jobs.submit(engine)
    monkeypatch.setattr(many, "BATCH", 2)
    real, batches = many.moving, iter([True, False])

    def until_it_goes(*words: Any) -> Procedure[None]:
        if next(batches):
            return (yield from real(*words))
        raise Unavailable("the connection broke", "it is away", "repeat it")

    monkeypatch.setattr(many, "moving", until_it_goes)

    result = cli("jobs", "cancel", "--queue", "mail", "--json")

    assert result.code == 3
    assert (result.json["jobs"], result.json["not_reached"]) == (2, 1)
    assert "FR-502" in result.err


# --- change ------------------------------------------------------------------------------------------


def test_a_job_is_changed_by_its_id_and_its_page_tells_it(cli: Cli, url: str, engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine, jobs.new_job(delay_s=3600))

    words = ("--run-at", "2031-12-24T18:00+01:00", "--priority", "-7", "--move-to", "bulk")
    done = cli("jobs", "change", job_id, *words, "--args", '{"to":"eve"}', "--reason", "moved", "--json")

    assert done.json["outcomes"] == [{"id": job_id, "outcome": "changed", "error": None}]
    found = cli("jobs", "show", job_id, "--json").json
    assert (found["job"]["run_at"], found["job"]["priority"], found["job"]["queue"]) == (
        "2031-12-24T17:00:00.000000Z", -7, "bulk",
    )  # fmt: skip
    assert found["job"]["args"] == {"to": "eve"}
    entry = found["timeline"][-1]
    assert entry["kind"] == "changed"
    assert entry["detail"]["queue"] == ["mail", "bulk"]
    assert entry["detail"]["run_at"][1] == "2031-12-24T17:00:00.000000Z"
    shown = cli("jobs", "show", job_id, "--utc").out
    assert "queue: mail → bulk" in shown and "priority: 0 → -7" in shown
    assert "args_was" not in shown
    assert cli("jobs", "change", job_id, "--priority", "-7").out.split() == [job_id, "as", "it", "was"]


def test_jobs_are_changed_by_filter_after_an_exact_count(cli: Cli, url: str, engine: AnyEngine) -> None:
    ids = jobs.submit(engine, *(jobs.new_job(delay_s=60) for _ in range(3)))
    (other,) = jobs.submit(engine, jobs.new_job(queue="slow"))
    ran = jobs.running(engine)

    counted = cli("jobs", "change", "--queue", "mail", "--run-now", "--dry-run", "--json").json
    assert counted == {"verb": "change", "dry_run": True, "jobs": 3, "ids": [*reversed(ids)]}
    assert cli("jobs", "change", "--queue", "mail", "--run-now").code == 0

    assert [engine.run(store.read([each]))[each].run_at_us < engine.run(store.clock()) for each in ids] == [
        True, True, True,
    ]  # fmt: skip
    assert cli("jobs", "show", other, "--json").json["timeline"][-1]["kind"] == "submitted"
    assert cli("jobs", "change", ran.id, "--run-now").error == "FR-303"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--run-now", "--delay", "5"],
        ["--run-at", "tomorrow"],
        ["--run-at", "2026-12-24T18:00"],
        ["--priority", "101"],
        ["--delay", "-1"],
        ["--move-to", ""],
        ["--args", "[1]"],
        ["--args", "to=eve"],
    ],
)
def test_a_change_that_cannot_be_is_refused_at_the_door(
    cli: Cli, url: str, engine: AnyEngine, words: list[str]
) -> None:
    (job_id,) = jobs.submit(engine)
    refused = cli("jobs", "change", job_id, *words)
    assert (refused.code, refused.error) == (2, "FR-201")
    assert cli("jobs", "show", job_id, "--json").json["timeline"][-1]["kind"] == "submitted"
