"""Every sentence of the pages in which a command tells something: it is played here, or by the test that is named.

Those that are played look at one database, in which something waits for everything. A sentence that is new, or that
says something else now, needs a line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fencerow import App
from fencerow.cli import main
from fencerow.cli.columns import NAMES
from fencerow.core.model.ids import new_id
from fencerow.core.model.wanted import SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.events.groups import GroupStart, make_group
from fencerow.handovers.terms import HandoverTerms
from fencerow.limits import Breaker, Limit, limits
from fencerow.turns import handing
from tests.house.tree import ROOT
from tests.kit import jobs
from tests.kit.environment import forget_settings
from tests.whole.guide.sentences import sentences

ERROR = '{"type":"ValueError","message":"no such street","code":"permanent_error"}'
JOBS: dict[str, dict[str, Any]] = {
    "handed": {"terms": HandoverTerms("bot", "k", 60.0).terms},
    "failing": {"limits": ["shut"]},
    "first": {"exclusive": "account-7"},
    "second": {"exclusive": "account-7"},
    "taking": {"limits": ["github"]},
    "limited": {"limits": ["github"]},
    "labelled": {"affinity": "gpu", "affinity_wait_s": 3600.0},
    "paused": {"queue": "news"},
    "shared": {"queue": "news", "share": "tenant-7"},
}
# A page and how the sentence begins; the commands, and what each of them must say. {words} are ids of the scene.
PLAYED = {
    "cli.md: `fencerow jobs list --help` names all": {"jobs list --help": [*NAMES]},
    "cli.md: `fencerow top` shows queues, workers": {"top --once": ["mail", "web-1", "no such street"]},
    "errors.md: `fencerow workers` lists them": {"workers": ["web-1"]},
    "errors.md: `fencerow events groups` lists all": {"events groups": ["billing"]},
    "errors.md: `fencerow limits list` shows those": {"limits list": ["github", "shut"]},
    "errors.md: `fencerow schedules list` shows those": {"schedules list": ["nightly"]},
    "errors.md: Workers go on with less at once": {"doctor": ["web-1 does less at once", "24 claims"]},
    "guide/affinity.md: `fencerow why ID` says for which label": {
        "why {labelled}": ["the label gpu", "living ones that would take it: 0", "anybody may"]
    },
    "guide/affinity.md: `fencerow jobs show` has the label": {
        "jobs show {labelled}": ["gpu, after 3600 s anybody"],
        "workers": ["big"],
        "workers show web-1": ["big"],
    },
    "guide/change.md: `fencerow jobs show` says who changed what": {
        "jobs show {changed}": ["by ada", "priority: 0 → 7", "it is urgent"]
    },
    "guide/exclusive.md: `fencerow jobs show` says `waiting`, and at which gate": {
        "jobs show {second}": ["waiting", "the exclusive key account-7", "{first}"]
    },
    "guide/exclusive.md: `fencerow exclusive` lists the keys": {"exclusive": ["account-7"]},
    "guide/exclusive.md: `fencerow exclusive show account-7` names the jobs": {
        "exclusive show account-7": ["{first}", "{second}", "since", "attempt", "web-1"]
    },
    "guide/exclusive.md: `fencerow why ID` says of a job at which gate": {
        "why {second}": [
            "the exclusive key account-7",
            "{first}",
            "it is the next",
            "`fencerow exclusive show`",
        ]
    },
    "operations.md: `fencerow why` of a job that waits says who has the turn": {
        "why {second}": ["{first}", "it is the next"]
    },
    "guide/fairness.md: `fencerow jobs show` says to which share": {"jobs show {shared}": ["tenant-7"]},
    "guide/handover.md: `fencerow handovers show ID` shows one": {
        "handovers show {handed}": ["bot", "{handed}"]
    },
    "guide/handover.md: `fencerow jobs show` and `fencerow why` tell of it": {
        "jobs show {handed}": ["to bot, key k"],
        "why {handed}": ["receiver bot, key k"],
    },
    "guide/limits.md: `fencerow jobs show` says at which gate": {
        "jobs show {limited}": ["waiting", "the limit github"]
    },
    "guide/limits.md: `fencerow why JOB` says it of a job": {"why {limited}": ["the limit github", "1 of 1"]},
    "guide/limits.md: `fencerow limits show` says until when it is open": {
        "limits show shut": ["its breaker is open", "in 10 min"]
    },
    "guide/schedules.md: `fencerow schedules explain` says a schedule in words": {
        "schedules explain nightly": ["At 03:00"],
        "schedules next nightly": ["T03:00:00"],
    },
    "guide/sqlalchemy.md: `fencerow sql` prints the text": {"sql": ["CREATE TABLE"]},
    "guide/two-programs.md: The declared jobs' queues": {"doctor": ["news"]},
    "guide/two-programs.md: `fencerow why JOB` counts": {
        "why {paused}": ["living workers that know", "living workers that serve queue news"]
    },
    "guide/two-programs.md: `fencerow workers` lists all": {"workers": ["web-1", "mail"]},
    "tutorial.md: `fencerow why 6a1b2c4d` says why": {"why {paused}": ["queue news was paused"]},
    "tutorial.md: `fencerow top` shows queues": {"top --once": ["mail", "web-1"]},
    "tutorial.md: `fencerow doctor` finds everything": {"doctor": ["news"]},
    "guide.md: `fencerow doctor` finds what is wrong": {
        "doctor": ["news"],
        "why {paused}": ["queue news was paused"],
    },
    "operations.md: `fencerow workers` shows them": {"workers": ["{worker}", "web-1"]},
    "operations.md: **You may build an index ahead**": {"sql": ["CREATE INDEX"]},
    "when-not-to-use.md: `fencerow doctor` says which version": {"doctor": ["SQLite 3."]},
}
DOCTOR, PAYLOADS = "doctor/test_doctor.py", "payloads/test_outside.py"
DESCRIPTORS = "cli/test_descriptors.py"
SHOWN_BY = {
    "errors.md: `fencerow relay` and `fencerow relay parts NAME`": "relay/test_commands.py::test_relays",
    "errors.md: `fencerow relay` shows what it said": "relay/test_commands.py::test_the_doctor_tells_of_brokers",
    "guide/relay.md: The log says it once": "relay/test_commands.py::test_the_doctor_tells_of_brokers",
    "guide/django.md: A task that lies elsewhere waits": f"{DOCTOR}::test_a_name_nobody_knows",
    "deploy.md: `fencerow doctor` says how many are in use": "doctor/test_connections.py::test_what_all_workers",
    "guide/two-programs.md: `fencerow why JOB` says so": f"{DOCTOR}::test_a_name_nobody_knows",
    "errors.md: `fencerow doctor` run as that role": "doctor/test_doctor.py::test_missing_privileges",
    "errors.md: `fencerow webhooks list` shows": "web/webhooks/test_endpoints.py::test_the_commands_make",
    "guide/webhooks.md: `fencerow webhooks rotate shop`": "web/webhooks/test_endpoints.py::test_the_commands_make",
    "errors.md: `fencerow tokens list` has the ids": "web/tokens/test_commands.py::test_a_token_is_printed_once",
    "errors.md: `fencerow maintenance` says since when": "web/gateway/test_maintenance_command.py::test_the_command",
    "guarantees.md: On PostgreSQL workers that had seen more": "whole/failover/test_lost_commits.py::test_commits_that",
    "guide/affinity.md: `fencerow doctor` finds jobs": "doctor/test_affinity.py::test_doctor_finds_labels",
    "guide/check.md: `fencerow check` finds out": "proof/check/test_guarded.py::",
    "guide/events.md: `fencerow events lag` shows how long": "events/test_commands.py::test_groups_and_their_lag",
    "guide/events.md: `fencerow doctor` fails if an event": "events/test_unplaced.py::test_events_without_a_place",
    "errors.md: `fencerow flows` shows those": "flows/test_commands.py::test_a_flow_is_listed",
    "guide/flows.md: `fencerow flows show ID`": "flows/test_commands.py::test_a_flow_is_listed",
    "guide/flows.md: `fencerow why JOB` names those": "flows/test_commands.py::test_a_flow_is_listed",
    "guide/handover.md: `fencerow handovers` lists what is not": "handovers/test_looking.py::test_a_list_says_where",
    "guide/steps.md: On the command line `fencerow steps` lists": "steps/test_commands.py::test_what_a_job_remembers",
    "guide/steps.md: `fencerow saga JOB` shows": "saga/test_saga.py::test_a_job_that_fails_is_undone",
    "guide/steps.md: `fencerow doctor` tells how many": "steps/test_commands.py::test_doctor_tells",
    "errors.md: `fencerow steps verify FILE` finds this": "steps/test_commands.py::test_code_is_compared_with",
    "guide/limits.md: Where a worker does not know a zone": "limits/test_verbs.py::test_a_row_that_was_changed_by_hand",
    "guide/logs.md: `fencerow dev -A shop:app` shows": "cli/test_dev.py::",
    "guide/migrations.md: `fencerow backfills wait senders`": "migrations/backfills/test_commands.py::test_a_wait_ends",
    "guide/migrations.md: Then its lane stops": "migrations/backfills/test_backfill.py::test_a_range_that_fails",
    "guide/payloads.md: It is counted": "payloads/test_checks.py::test_the_doctor_counts_live_jobs_by_key",
    "guide/payloads.md: `fencerow jobs show` says under which": "cli/test_sealed.py::test_a_sealed_job_is_shown",
    "guide/payloads.md: `fencerow doctor` counts by key": "payloads/test_checks.py::test_the_doctor_finds_a_key",
    "guide/payloads.md: What is named otherwise stays": f"{PAYLOADS}::test_what_has_no_name_of_ours_is_never_removed",
    "guide/payloads.md: `fencerow doctor` counts orphans": f"{PAYLOADS}::test_a_submit_that_was_rolled_back_leaves",
    "guide/sqlalchemy.md: `fencerow migrate` and `fencerow doctor`": f"{DOCTOR}::test_missing_tables_fail",
    "guide/tokens.md: `fencerow doctor` names": "web/tokens/test_commands.py::test_doctor_warns_of",
    "guide/tokens.md: `fencerow tokens` shows when": "web/tokens/test_known.py::test_that_a_token_is_used_is_noted",
    "guide/tokens.md: `fencerow doctor` warns for 14 days": "web/tokens/test_commands.py::test_doctor_warns_of",
    "guide/http-operations.md: `fencerow jobs show` has it": "cli/test_jobs.py::test_show_tells_the_job_its",
    "errors.md: `fencerow doctor` warns when 80 %": f"{DESCRIPTORS}::test_a_process_that_has_nearly_all",
    "errors.md: `fencerow tokens` has those": "web/tokens/test_commands.py::test_a_program_gets_all_of_it",
    "operations.md: From 80 % on `fencerow doctor`": f"{DESCRIPTORS}::test_a_process_that_has_nearly_all",
    "guide/transitions.md: Jobs go on": "operators/test_worker_commands.py::test_what_fails_in_the_background",
    "guide/moving.md: `fencerow doctor` tells of a move": "moving/test_command.py::test_the_doctor_tells_of_a_move",
    "guide/unique.md: `fencerow submit` says it too": "cli/test_submit.py::test_turns_are_given_at_the_submit",
    "guide.md: `fencerow why` and `fencerow doctor` show such": "doctor/test_why.py::test_arguments_that_are_too_new",
    "operations.md: Until then `fencerow workers` says": "operators/test_worker_commands.py::test_slots_and_queues",
    "operations.md: The telemetry fact `loop_error`": "operators/test_worker_commands.py::test_what_fails_in_the",
    "operations.md: Each worker logs the jump": f"{DOCTOR}::test_a_clock_that_went_back_is_seen",
    "postgresql.md: `fencerow doctor` adds up": "doctor/test_connections.py::test_what_all_workers_may_open",
    "postgresql.md: `fencerow doctor` says so (`plans`)": "doctor/test_connections.py::test_a_pooler_is_told_of_plans",
    "postgresql.md: `fencerow workers --json` has it": "operators/test_connections_told.py::test_a_program_is_told",
    "operations.md: **A migration that makes a table": "cli/test_schema.py::test_the_privileges_are_printed_alone",
    "guide/dashboard.md: `fencerow dev -A module:app` shows": "cli/test_dev.py::test_a_change_starts_the_worker_anew",
    "guide/dashboard.md: `fencerow serve -A": "web/dashboard/test_mounted.py::test_beside_the_gateway_each_has",
    "postgresql.md: `--submit-role` names": "cli/test_sql_function.py::test_the_command_prints_it",
    "postgresql.md: `fencerow doctor` says so": f"{DOCTOR}::test_a_pooler_through_which_listen_hears_nothing",
    "postgresql.md: `fencerow doctor` warns of it": f"{DOCTOR}::test_row_security_that_holds_for_the_role",
    "speed.md: `fencerow doctor` names old transactions": f"{DOCTOR}::test_a_snapshot_that_holds_the_horizon",
    "speed.md: `fencerow doctor` names them and who": f"{DOCTOR}::test_a_snapshot_that_holds_the_horizon",
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Ids of jobs that wait for everything that a job can wait for, and the URL of their database."""
    url = f"sqlite:///{tmp_path_factory.mktemp('scene') / 'jobs.db'}"
    with App(url, actor="ada") as app:
        app.check_or_create()
        engine = app.engine
        assert isinstance(engine, SqliteEngine)
        yield {"url": url, **waiting(app, engine)}


def waiting(app: App, engine: SqliteEngine) -> dict[str, str]:
    for each in (Limit("github", at_once=1), Limit("shut", breaker=Breaker(1, stop_s=600.0))):
        engine.run(limits.define(each, actor="ada", reason=None))
    engine.run(make_group("billing", ["order.*"], partitions=1, start=GroupStart("beginning")))
    worker = living(engine)
    ids = {name: one(engine, **options) for name, options in JOBS.items()}
    app.client.cancel(ids["handed"])
    engine.run(handing.hand_over())
    claimed = {each.id: each.attempt for each in jobs.claim(engine, worker)}
    engine.run(store.fail([store.Failure(ids["failing"], claimed[ids["failing"]], ERROR)], holder=worker))
    engine.run(handing.hand_over())
    ids["changed"] = one(engine)
    app.client.change(ids["changed"], priority=7, reason="it is urgent")
    app.client.pause_queue("news", reason="the provider is away")
    declared(app)
    return {**ids, "worker": worker}


def one(engine: SqliteEngine, **options: Any) -> str:
    return jobs.submit(engine, jobs.new_job(**options))[0]


def living(engine: SqliteEngine) -> str:
    holder = new_id()
    info = '{"queues":["mail"],"slots":12,"names":["send"],"labels":["big"]}'
    said = msgspec.json.encode(Stated(0, (SlotGroupNow(("mail",), 12),), too_large="24 claims")).decode()
    made = store.register(
        holder=holder, name="web-1", host="db1", pid=7, info=info, lease_s=3600.0, stated=said
    )
    assert engine.run(made)
    return holder


def declared(app: App) -> None:
    @app.job
    def report() -> None: ...

    app.schedules.put("nightly", report, cron="0 3 * * *")


@pytest.mark.parametrize("sentence", PLAYED)
def test_the_command_says_what_the_page_says(
    sentence: str, scene: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_settings(monkeypatch)
    monkeypatch.setenv("FENCEROW_URL", scene["url"])
    monkeypatch.delenv("COLUMNS", raising=False)
    for command, wanted in PLAYED[sentence].items():
        main.run(command.format(**scene).split())
        told = capsys.readouterr().out

        missing = [words for words in wanted if words.format(**scene) not in told]
        assert not missing, told


def test_each_sentence_of_the_pages_has_a_test() -> None:
    told = {f"{page}: {sentence}" for page, sentence in sentences()}
    known = [*PLAYED, *SHOWN_BY]

    assert [each for each in sorted(told) if not each.startswith(tuple(known))] == []
    assert [each for each in known if not any(sentence.startswith(each) for sentence in told)] == []


def test_the_tests_that_are_named_are_there() -> None:
    def is_there(named: str) -> bool:
        path, _, test = named.partition("::")
        file = ROOT / "tests" / Path(path)
        return (
            file.is_file()
            and re.search(rf"^(async )?def {test or 'test'}", file.read_text("utf-8"), re.M) is not None
        )

    assert [each for each in SHOWN_BY.values() if not is_there(each)] == []
