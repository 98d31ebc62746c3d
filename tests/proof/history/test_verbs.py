"""Every statement that writes is recorded, or stands here with the reason why it need not be."""

from __future__ import annotations

import re

import pytest

from fencerow.core.store.submit import Acceptance, as_arrays, as_document, as_lines
from fencerow.core.store.tables import postgres_queries, sqlite_queries
from fencerow.db.queries import Queries
from fencerow_proof.history.verbs import VERBS
from tests.kit.jobs import new_job

WRITES = re.compile(r"\b(INSERT INTO|(?<!FOR )UPDATE|DELETE FROM|COPY)\b", re.IGNORECASE)

COMING = {"crash", "note_alone"}  # statements of the child processes
UNRECORDED = {
    "note_changed": "it tells of what `change` did in the same transaction",
    **dict.fromkeys(
        ("move_back", "note_moved_back"), "when a job is due is no state: it waits or is queued as before"
    ),
    "note_replaced": "it tells of what `replace_jobs` did in the same transaction",
    **dict.fromkeys(
        ("lock_unique", "own_unique", "give_keys", "purge_unique"),
        "whose job counts under a unique key: tests/proof/race/test_unique.py; the jobs come by submit",
    ),
    **dict.fromkeys(
        (
            *("arrive", "lock_gates", "try_gates", "note_gates", "send_on", "take_arrivals", "forget_gates"),
            *("free_gates", "free_turns"),
            *("arrive_at_limit", "arrive_of_queue", "forget_passed_queues", "keep_limit_state"),
            *("keep_turns", "keep_no_turns"),
        ),
        "gates: who came to one is told by submit, and who was given a turn by give_turns or give_alike",
    ),
    **dict.fromkeys(("weigh_share", "forget_weight"), "turns between shares: what they lead to are claims"),
    **dict.fromkeys(
        (
            *("line_up", "line_up_again", "stay_in_line", "begin_again_in_line"),
            *("take_handovers", "confirm_handover", "release_handover"),
        ),
        "handovers: whose end was taken by whom is judged by what receivers note, tests/handovers",
    ),
    **dict.fromkeys(
        ("purge_handovers", "write_missed", "shorten_holds"),
        "handovers that receivers are done with, or never had, or that a clock held too long",
    ),
    "note_hooks": "how much came to hooks, for people who look: tests/web/dashboard/test_hooks.py; no job is touched",
    **dict.fromkeys(
        ("note_entries", "purge_entries"),
        "who changed what by hand, in the transaction of the change: tests/audit; no job is touched",
    ),
    **dict.fromkeys(
        (
            *("put_flow", "put_flow_jobs", "put_flow_edges", "put_flow_callbacks", "note_callback_trouble"),
            *("take_flow_ends", "close_flow_edges", "note_flow_jobs_woken", "tell_again", "end_flows"),
            *(
                "take_callbacks",
                "write_missed_flow_ends",
                "ask_flow_cancel",
                "reopen_flow",
                "reopen_flow_edges",
            ),
            *(
                "unwake_flow_jobs",
                "tell_ends_before",
                "note_flow_wait",
                "forget_flow_wait",
                "forget_flow_waits",
            ),
            *("forget_flows", "forget_flow_jobs", "forget_flow_edges", "forget_flow_callbacks"),
        ),
        "flows: what they lead to are jobs that wait, are woken and are cancelled; tests/proof/race/test_flows.py",
    ),
    **dict.fromkeys(
        (
            *("remember_step", "note_wait", "forget_wait", "take_signal", "send_signal", "waits_seen"),
            *("make_approval", "answer_approval", "withdraw_approvals"),
        ),
        "what a job remembers and waits for: tests/steps; it is suspended and woken by suspend and wake",
    ),
    **dict.fromkeys(
        ("forget_steps", "forget_waits", "purge_steps"), "what finished or removed jobs remember"
    ),
    **dict.fromkeys(
        ("write_output", "purge_output"), "what jobs emit: tests/proof/race/test_output.py; no job is touched"
    ),
    **dict.fromkeys(
        ("put_saga", "put_saga_step", "purge_sagas"),
        "what undoes a job's steps; its compensation is inserted by the end itself: tests/proof/crash/sagas.py",
    ),
    "note_canary": "a line in the timeline of a job of our own, whose submit is recorded",
    **dict.fromkeys(
        ("create_token", "revoke_token", "note_use", "forget_tokens"),
        "whom a token lets pass: tests/proof/race/test_tokens.py; no job is touched",
    ),
    **dict.fromkeys(
        ("begin_maintenance", "end_maintenance"), "whether gateways take requests; no job is touched"
    ),
    **dict.fromkeys(
        (
            *(
                "add_endpoint",
                "change_endpoint",
                "rotate_endpoint",
                "retire_endpoint_secret",
                "enable_endpoint",
            ),
            *("disable_endpoint", "remove_endpoint", "forget_removed", "purge_removed", "note_gone"),
            *("take_probe", "count_failure", "close_circuit"),
        ),
        "where webhooks go, and whether: tests/proof/race/test_webhooks.py; no job is touched",
    ),
    **dict.fromkeys(
        (
            "make_deliveries",
            "redeliver",
            "note_delivered",
            "purge_delivered",
            "note_attempt",
            "count_attempt",
        ),
        "webhooks: what is sent is judged by receivers, tests/web/webhooks; their jobs come by submit",
    ),
    **dict.fromkeys(
        (
            *(
                "open_worked",
                "defer_worked",
                "close_worked",
                "answer_worked",
                "beat_worked",
                "progress_worked",
            ),
            *("worked_seen", "take_ended_worked", "purge_worked"),
        ),
        "attempts that endpoints answer later: tests/proof/race/test_worked.py; suspend and wake move the jobs",
    ),
    "mark_awaited": "says only that the end is to be announced",
    "keep_key": "goes with revive, in one transaction",
    "purge_row_leases": "which attempt claimed a row of the user's; its fence lies in the row itself",
    "purge_repeated": "what repeats have left; no promise about it is checked",
    "pause_queue": "no promise about pauses is checked",
    "resume_queue": "no promise about pauses is checked",
    "note_disowned": "goes with disown, in one transaction",
    "forget_notes": "goes with the removal of its jobs, in one transaction",
    **dict.fromkeys(
        (
            "open_period",
            "close_periods",
            "take_period",
            "leave_period",
            "forget_period",
            "forget_lost_periods",
        ),
        "where finished jobs lie; that they go is told by detach_period and drop_period",
    ),
    **dict.fromkeys(
        ("forget_period_events", "forget_period_logs", "forget_period_progress"),
        "notes of jobs that go with their period",
    ),
    **dict.fromkeys(
        (
            *("take_mutex", "make_mutex", "lift_mutex", "renew_mutex", "release_mutex"),
            *("abandon_mutex", "free_mutex", "purge_mutexes", "raise_mutex_floor"),
        ),
        "mutexes have a history of their own in their races: the token tells it",
    ),
    **dict.fromkeys(
        ("guard_mutex", "advisory_lock", "try_advisory_lock"), "writes nothing; on SQLite it takes the lock"
    ),
    **dict.fromkeys(
        ("count_deferral", "forget_deferrals", "purge_deferrals"),
        "how often a job waited, which nothing promises",
    ),
    **dict.fromkeys(
        (
            "make_backfill",
            "take_backfill",
            "move_backfill",
            "end_backfill",
            "fail_backfill",
            "pause_backfill",
            "resume_backfill",
            "forget_backfill",
        ),
        "backfills are told by what they wrote in the user's table: tests/proof/race/test_backfill.py",
    ),
    **dict.fromkeys(
        (
            *("declare_limit", "define_limit", "redefine_limit", "remove_limit", "limit_queue"),
            *("make_limit_state", "write_limit_state", "forget_limit_state", "forget_named_limit"),
            "forget_limit_states",
            *("watch_failures", "ignore_failures", "take_failures"),
        ),
        "what a limit says and remembers; that it holds is told by its races: tests/proof/race/test_limits.py",
    ),
    **dict.fromkeys(
        (
            *("put_schedules", "advance_schedules", "insert_ticks", "make_up_ticks"),
            *("note_forgotten", "purge_ticks", "note_ended"),
            *("pause_schedules", "resume_schedules", "note_run", "note_troubles"),
            *("refresh_sooner", "claim_refresh", "refreshed", "note_unfollowed"),
            *("declare_program", "contradict_program"),
            *("remove_schedule", "remove_undeclared", "keep_undeclared", "resume_undeclared"),
        ),
        "when jobs are made, and that a fire makes one: tests/proof/race/test_schedules.py; the jobs come by submit",
    ),
    **dict.fromkeys(
        ("take_work", "renew_work", "note_part", "finish_work", "make_vacuum_yield"),
        "who builds an index of the schema; no job is touched",
    ),
    **dict.fromkeys(
        (
            *(
                "begin_move",
                "close_for_move",
                "own_no_payloads",
                "own_payloads_again",
                "end_move",
                "forget_move",
            ),
            *(
                "begin_filling",
                "put_part",
                "open_filled",
                "forget_filling",
                "remove_parts",
                "place_moved_events",
                "own_payloads",
            ),
        ),
        "how far a move is; what becomes of the jobs is compared by the move itself, tests/moving",
    ),
    "describe_worker": "what a worker says of itself; its lease stays",
    "forget_workers": "rows of workers that ended and hold nothing",
    "make_ledger": "the schema",
    "note_migration": "the schema",
    "ensure_workers": "the schema",
    **dict.fromkeys(
        (
            *("reserve_once", "end_once", "renew_once", "release_once", "purge_once"),
            *("admit", "withdraw_admitted", "purge_windows"),
            *("reserve_source", "confirm_source", "stamp_source", "renew_source", "release_source"),
            *("respell_source", "forget_source", "purge_sources"),
        ),
        "of the user's own operations and tables; no job is touched",
    ),
    **dict.fromkeys(
        (
            *("know_relay", "renew_relay_reader", "forget_relay_reader", "forget_dead_relay_readers"),
            *(
                "make_relay_parts",
                "take_relay_parts",
                "give_relay_parts",
                "move_relay_part",
                "begin_relay_part",
            ),
            *("stop_relay_part", "note_relay_lag", "put_unread", "discard_unread", "purge_unread"),
            *("pause_relay", "resume_relay", "set_relay_position", "remove_relay"),
        ),
        "relays: who stores what came in, and once: tests/proof/race/test_relay.py; the jobs come by submit",
    ),
    **dict.fromkeys(
        (
            "append_events",
            "sequence_events",
            "settle_events",
            "make_group",
            "make_cursors",
            "retopic_group",
            "renew_drainer",
            "take_cursors",
            "give_cursors",
            "forget_drainer",
            "forget_dead_drainers",
            "advance_cursor",
            "put_aside",
            "excuse_event",
            "try_event",
            "try_aside",
            "end_aside",
            "postpone_aside",
            "hold_aside",
            "redrive_events",
            "discard_parked",
            "replay_cursors",
            "forget_asides",
            "begin_generation",
            "remove_group",
            "alarm_group",
            "calm_group",
            "trim_events",
            "note_trimmed",
        ),
        "events: tests/proof/race/test_events.py and tests/events/bus check what they promise",
    ),
}


@pytest.mark.parametrize("queries", [postgres_queries(), sqlite_queries()], ids=["postgres", "sqlite"])
def test_every_writing_statement_is_recorded(queries: Queries) -> None:
    writing = {
        name
        for name, query in queries.items()
        if not name.startswith("schema_") and any(WRITES.search(text) for text in query.statements)
    }
    assert len(writing) > 25, "the look at the statements finds nothing"
    missing = writing - set(VERBS) - set(UNRECORDED)
    assert not missing, (
        f"add these to VERBS in testing/history/verbs.py, or say here why not: {sorted(missing)}"
    )
    gone = ((set(VERBS) - COMING) | set(UNRECORDED)) - set(postgres_queries()) - set(sqlite_queries())
    assert not gone, f"these are no statements any more: {sorted(gone)}"


def test_a_submit_by_arrays_is_recorded_job_by_job() -> None:
    jobs = [new_job(), new_job()]

    told = VERBS["submit_alike"].asked(as_arrays(jobs))

    assert told == VERBS["submit"].asked({"jobs": as_document(jobs)})


@pytest.mark.parametrize("share", [None, "ada"])
@pytest.mark.parametrize("query", ["submit", "copy_gated"])
def test_what_a_submit_says_of_turns_is_recorded_whatever_else_it_says(query: str, share: str | None) -> None:
    keyed = new_job(exclusive="k", exclusive_at_once=2, limits=("a", "b"), share=share)
    plain = new_job(share=share)
    lines = as_lines([keyed, plain], Acceptance(0, False), gated=True)

    asked = VERBS[query].asked({"lines": lines, "jobs": as_document([keyed, plain])})

    said = [{name: each.get(name) for name in ("exclusive", "exclusive_at_once", "limits")} for each in asked]
    assert said == [
        {"exclusive": "k", "exclusive_at_once": 2, "limits": ["a", "b"]},
        {"exclusive": None, "exclusive_at_once": None, "limits": None},
    ]
