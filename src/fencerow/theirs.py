"""Options and verbs of other job systems, and what they are called here: for who comes from one and writes by habit.

The words are those of Celery, RQ, Dramatiq, arq, Huey, Procrastinate, TaskIQ, Django-Q, Sidekiq, Oban and River.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fencerow.core.model.habits import OthersWords

# What an option is called here: of these the first that is known where it was written.
OURS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("countdown", "defer_by", "schedule_in", "delay"), ("delay_s", "after_s")),
    **dict.fromkeys(("eta", "defer_until", "schedule_at", "scheduled_at"), ("run_at",)),
    **dict.fromkeys(("expires", "max_age"), ("expires_s",)),
    **dict.fromkeys(("ttl",), ("expires_s", "retention_s")),
    **dict.fromkeys(("time_limit", "soft_time_limit", "job_timeout"), ("timeout_s",)),
    **dict.fromkeys(("max_retries", "retries", "max_attempts", "max_tries", "retry"), ("attempts_max",)),
    **dict.fromkeys(("autoretry_for", "retry_for", "retry_when", "retry_exceptions"), ("retry_on",)),
    **dict.fromkeys(("dont_autoretry_for", "throws"), ("fail_on",)),
    **dict.fromkeys(
        ("retry_backoff", "default_retry_delay", "min_backoff", "retry_delay", "retry_policy"),
        ("backoff", "base_s"),
    ),
    **dict.fromkeys(("retry_backoff_max", "max_backoff"), ("cap_s",)),
    **dict.fromkeys(("retry_jitter",), ("jitter",)),
    **dict.fromkeys(("task_id", "job_id", "uid"), ("key", "id")),  # theirs may be any text, ours is a UUID
    **dict.fromkeys(("queue_name", "routing_key"), ("queue",)),
    **dict.fromkeys(("result_ttl", "failure_ttl", "result_expires", "keep_result"), ("retention_s",)),
    **dict.fromkeys(("ignore_result", "remove_on_complete"), ("ephemeral",)),
    **dict.fromkeys(("queueing_lock", "unique_opts", "unique_for", "unique_key"), ("unique",)),
    **dict.fromkeys(("idempotency_key",), ("key",)),
    **dict.fromkeys(("at_front", "enqueue_at_front"), ("priority",)),
    **dict.fromkeys(("meta", "description"), ("metadata",)),
    **dict.fromkeys(("lock", "concurrency_key"), ("exclusive",)),
    **dict.fromkeys(
        ("concurrency", "max_concurrency", "max_workers", "max_jobs", "worker_concurrency", "threads"),
        ("slots", "at_once"),
    ),
    **dict.fromkeys(("slots", "limit", "max"), ("at_once",)),
    **dict.fromkeys(("broker", "broker_url", "dsn", "redis_url", "database_url"), ("url",)),
    **dict.fromkeys(("status", "statuses"), ("states", "state")),
    **dict.fromkeys(("task", "task_name", "job_name"), ("job", "name")),
    **dict.fromkeys(("actor_name",), ("name",)),
    **dict.fromkeys(("hostname", "worker_name"), ("name",)),
    **dict.fromkeys(("depends_on", "depends", "dependencies", "parents"), ("needs",)),
    **dict.fromkeys(("every", "interval", "seconds", "repeat"), ("interval_s",)),
    **dict.fromkeys(("crontab", "schedule", "expression"), ("cron",)),
    **dict.fromkeys(("timezone", "zone"), ("tz",)),
    **dict.fromkeys(("coalesce", "catchup"), ("misfire",)),
}

_IN_A_FLOW: Final = (
    "jobs that wait for others are put together in a flow",
    'write flow = app.flow("name"), and flow.add("job", job.call(...), needs=[...]) for each job',
)
_BEHIND_IT: Final = (
    "what follows the end of a job is a job too",
    "write job.submit_next(...) in the handler; or flow.on_succeeded(...), on_failed(...) or on_done(...)",
)
_SCHEDULED: Final = (
    "when a job is submitted again and again is said apart from it",
    "write app.schedule(job, cron=...)",
)
_BY_TYPE: Final = (
    "the running job comes to the parameter of its type",
    "annotate the first parameter: `job: Job`",
)
_OF_THE_APP: Final = (
    "payloads are sealed for all jobs of an app",
    "write App(seal=...), and let jobs that stay readable be those of another App on the same tables",
)
_HOW_MANY: Final = (
    "what one process runs at a time are the slots of its worker; what all run together is said by a limit",
    'write app.worker(slots=...), or App(limits=[Limit("name", at_once=..., rate=...)]) and limits="name" at the job',
)
_ONE_DATABASE: Final = ("jobs and results lie in the one database of the app", "write App(url)")
# What no option here is called: why, and what to write instead.
ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("depends_on", "depends", "dependencies", "parents", "parent"), _IN_A_FLOW),
    **dict.fromkeys(("chain", "group", "chord", "group_id", "pipeline", "pipe_target", "then"), _IN_A_FLOW),
    **dict.fromkeys(("on_success", "on_failure", "on_error", "on_complete", "on_stopped"), _BEHIND_IT),
    **dict.fromkeys(("on_retry_exhausted", "callback", "callbacks", "errback"), _BEHIND_IT),
    **dict.fromkeys(("link", "link_error"), _BEHIND_IT),
    **dict.fromkeys(("cron", "crontab", "periodic", "schedule", "every", "interval", "repeat"), _SCHEDULED),
    **dict.fromkeys(("interval_s", "beat_schedule", "cron_jobs", "schedules"), _SCHEDULED),
    **dict.fromkeys(
        ("timezone", "tz"), ("each schedule has its own zone", "write app.schedule(job, tz=...)")
    ),
    **dict.fromkeys(("bind", "pass_context", "context"), _BY_TYPE),
    **dict.fromkeys(("seal", "sealed", "sign", "encrypt", "encrypted"), _OF_THE_APP),
    **dict.fromkeys(
        ("concurrency", "max_concurrency", "max_workers", "max_jobs", "worker_concurrency", "threads"),
        _HOW_MANY,
    ),
    **dict.fromkeys(("rate_limit", "rate", "max_instances", "workers", "slots", "at_once"), _HOW_MANY),
    **dict.fromkeys(("backend", "result_backend", "redis_settings", "connector"), _ONE_DATABASE),
    **dict.fromkeys(
        ("include", "imports", "import_paths"),
        ("an app imports nothing", "import the modules that declare jobs beside it"),
    ),
    **dict.fromkeys(
        ("burst", "drain"),
        (
            "that is said where a worker is run",
            "write run(until_idle=True), or run_blocking(until_idle=True)",
        ),
    ),
    **dict.fromkeys(
        ("processes", "num_workers"), ("a worker is one process", "write `fencerow worker --processes N`")
    ),
    **dict.fromkeys(
        ("serializer", "compression"), ("arguments and results are JSON", "leave it out; App(seal=...) seals")
    ),
    **dict.fromkeys(
        ("acks_late", "ack_late", "reject_on_worker_lost"),
        ("a job is always acknowledged after its handler has returned", "leave it out"),
    ),
    **dict.fromkeys(
        ("store_results", "track_started"), ("results and states are always kept", "leave it out")
    ),
    **dict.fromkeys(
        ("prefetch", "prefetch_count", "prefetch_multiplier", "worker_prefetch_multiplier"),
        ("a worker claims ahead what its slots will need", "leave it out"),
    ),
}
RENAMED: Final = "it has another name here"
# OthersWords that count less than ours: the number is another one too.
COUNT_LESS: Final[Mapping[str, str]] = dict.fromkeys(
    ("max_retries", "retries", "retry"), "which counts the first attempt too: one more than the retries"
)


def ours_for(name: str, known: Iterable[str]) -> tuple[str, str] | None:
    """Why an option of another system is refused, and what to write; None if nothing here means it."""
    ours = next((each for each in OURS.get(name, ()) if each in known), None)
    if ours is None:
        return ELSEWHERE.get(name)
    return RENAMED, ", ".join([f"write {ours}=", *([COUNT_LESS[name]] if name in COUNT_LESS else [])])


# Verbs: what to write instead, where `{it}` stands for what was asked for them.
_SUBMIT: Final = "write {it}.submit(...), or in async code await {it}.asubmit(...)"
_LATER: Final = "write {it}.using(delay_s=...).submit(...), or using(run_at=...) for an instant"
_OPTIONS: Final = (
    "write {it}.using(queue=..., delay_s=...).submit(...); using() takes every option of a submit"
)
_CALL: Final = "write {it}.call(...), and pass such calls to submit_many"
_HERE: Final = "call {it}(...) like the function that it is: that runs it here, without a database"
_RETRY: Final = "raise Retry(after_s=...) in the handler, or any error that its rule retries"

# What a declared job is asked for by users of Celery, RQ, Dramatiq, Huey, arq, Procrastinate, TaskIQ, Sidekiq.
_OF_JOBS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("delay", "adelay", "send", "asend", "enqueue", "aenqueue", "perform", "perform_async"), _SUBMIT
    ),
    **dict.fromkeys(("defer", "defer_async", "kiq", "delay_on_commit", "enqueue_job"), _SUBMIT),
    **dict.fromkeys(("enqueue_in", "enqueue_at", "perform_in", "perform_at", "schedule"), _LATER),
    **dict.fromkeys(("apply_async", "aapply_async", "send_with_options", "configure", "kicker"), _OPTIONS),
    **dict.fromkeys(("s", "si", "signature", "message"), _CALL),
    **dict.fromkeys(("apply", "call_local"), _HERE),
    "retry": _RETRY,
}

_DECLARE: Final = "write @{it}.job"
_BY_NAME: Final = "write {it}.submit_by_name(name, arguments), or job.submit(...) where the job is declared"
_SCHEDULE: Final = "write {it}.schedule(job, cron=...)"
_WORK: Final = "write `fencerow worker -A module:{it}`, or in a program async with {it}.worker(): ..."
_SLOTS: Final = (
    "write {it}.worker(slots=...), or `fencerow worker --slots N`: how many jobs one process runs at a time"
)
_IMPORT: Final = (
    "declare jobs with one {it} in as many modules as you like, and import these modules beside it"
)
# And an app.
_OF_APPS: Final[Mapping[str, str]] = {
    "task": _DECLARE,
    **dict.fromkeys(("cron", "periodic", "periodic_task", "add_periodic_task", "every", "repeat"), _SCHEDULE),
    **dict.fromkeys(("concurrency", "max_workers", "max_jobs"), _SLOTS),
    **dict.fromkeys(("run", "run_worker", "start", "serve", "worker_main"), _WORK),
    **dict.fromkeys(("include", "include_router", "autodiscover_tasks", "add_tasks_from"), _IMPORT),
    **dict.fromkeys(("send_task", "enqueue", "enqueue_job", "configure_task"), _BY_NAME),
}

WORDS: Final = OthersWords({*OURS, *ELSEWHERE}, ours_for, {"job": _OF_JOBS, "app": _OF_APPS})
