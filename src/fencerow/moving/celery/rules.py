"""What each name of Celery's becomes. Of Celery 5.7."""

from __future__ import annotations

from fencerow.moving.celery.note import NoteLevel

Rule = tuple[NoteLevel, str]
BECOMES, PERSON, DANGER = NoteLevel.BECOMES, NoteLevel.PERSON, NoteLevel.DANGER

OPTIONS: dict[str, Rule] = {
    "name": (BECOMES, 'name="..."; without it the name is that of the function alone, without its module'),
    "bind": (BECOMES, "a first parameter `job: Job` instead of `self`"),
    "queue": (BECOMES, "queue="),
    "max_retries": (BECOMES, "attempts_max=, which counts the first attempt too: one more"),
    "default_retry_delay": (BECOMES, "backoff=Backoff(base_s=..., factor=1)"),
    "autoretry_for": (BECOMES, "every error is retried by default; those that are not: fail_on="),
    "dont_autoretry_for": (BECOMES, "fail_on="),
    "retry_kwargs": (BECOMES, "attempts_max= and backoff="),
    "retry_backoff": (BECOMES, "backoff=Backoff(base_s=...); it doubles by default"),
    "retry_backoff_max": (BECOMES, "backoff=Backoff(cap_s=...)"),
    "retry_jitter": (BECOMES, "backoff=Backoff(jitter=...)"),
    "acks_late": (BECOMES, "nothing: a job is done when its success is stored"),
    "reject_on_worker_lost": (BECOMES, "nothing: it runs again; how often is crashes_max="),
    "retry_on_worker_lost": (
        BECOMES,
        "nothing: it runs again; how often is crashes_max=, apart from attempts_max=",
    ),
    **dict.fromkeys(
        ("acks_on_failure_or_timeout", "acks_on_failure", "acks_on_timeout"),
        (BECOMES, "nothing: a failure is stored with its error, and tried again up to attempts_max="),
    ),
    "ignore_result": (BECOMES, "nothing, or ephemeral=True: a success leaves no row"),
    "store_errors_even_if_ignored": (BECOMES, "nothing: errors are stored"),
    "track_started": (BECOMES, "nothing: a running job is known"),
    "expires": (BECOMES, "expires_s="),
    "pydantic": (BECOMES, "typed parameters: models are checked when the job is submitted"),
    **dict.fromkeys(
        ("pydantic_strict", "pydantic_context", "pydantic_dump_kwargs"),
        (PERSON, "the model itself: its model_config, its validators and serializers"),
    ),
    "time_limit": (PERSON, "timeout_s=; a plain function is stopped for sure only with process=True"),
    "soft_time_limit": (PERSON, "job.remaining_s says how long is left; no error is raised before that"),
    "rate_limit": (PERSON, "a limit (`rate`); it holds for all workers together, Celery's for each worker"),
    "priority": (PERSON, "priority=, -100 to 100, higher first; with Redis Celery's 0 is first"),
    "exchange": (PERSON, "no exchanges: name a queue"),
    "routing_key": (PERSON, "no routing keys: name a queue"),
    "base": (PERSON, "no task classes: shared state goes to a module or to middleware, hooks to middleware"),
    "after_return": (PERSON, "middleware, or an event on the end of the job"),
    "on_failure": (PERSON, "an event on `job.failed`, or middleware"),
    "on_success": (PERSON, "an event on `job.succeeded`, or a job in the same transaction"),
    **dict.fromkeys(("before_start", "on_retry", "on_replace"), (PERSON, "middleware")),
    "throws": (PERSON, "fail_on=, if they are not worth a retry"),
    "serializer": (PERSON, "arguments are JSON by the types of the parameters"),
    **dict.fromkeys(
        ("compression", "send_events", "trail", "typing", "shared", "lazy", "resultrepr_maxsize"),
        (BECOMES, "nothing"),
    ),
}
SUBMIT_OPTIONS: dict[str, Rule] = {
    "args": (BECOMES, "plain arguments of submit"),
    "kwargs": (BECOMES, "plain arguments of submit"),
    "countdown": (BECOMES, "using(delay_s=...)"),
    "eta": (BECOMES, "using(run_at=...)"),
    "expires": (BECOMES, "using(expires_s=...)"),
    "queue": (BECOMES, "using(queue=...)"),
    "task_id": (PERSON, "using(key=...): the same key is the same job, and another payload is refused"),
    "priority": OPTIONS["priority"],
    "link": (PERSON, "job.submit_next(...), stored with the success; or a flow with needs=[...]"),
    "link_error": (PERSON, "a flow's on_failed(...), or an event on `job.failed`"),
    "headers": (BECOMES, "using(headers=...)"),
    "exchange": OPTIONS["exchange"],
    "routing_key": OPTIONS["routing_key"],
    "serializer": OPTIONS["serializer"],
    "ignore_result": OPTIONS["ignore_result"],
    "time_limit": (BECOMES, "using(timeout_s=...)"),
    "soft_time_limit": OPTIONS["soft_time_limit"],
    **dict.fromkeys(
        (
            "retry",
            "retry_policy",
            "producer",
            "connection",
            "shadow",
            "compression",
            "publisher",
            "add_to_parent",
        ),
        (BECOMES, "nothing: a submit is one statement in your database"),
    ),
}
WORKFLOWS: dict[str, Rule] = {
    "chain": (
        PERSON,
        "a flow, each job with needs=[the one before]; a result is asked for, not put in front of the arguments",
    ),
    "group": (PERSON, "submit_many, or a flow whose last job needs all of them"),
    "chord": (
        PERSON,
        "a flow: the body is a job with needs=[...]; it may run with after=[...] though one failed",
    ),
    "chunks": (PERSON, "submit_many of larger calls, or a batch handler"),
    "xmap": (PERSON, "submit_many"),
    "xstarmap": (PERSON, "submit_many"),
}
SETTINGS: dict[str, Rule] = {
    "broker_url": (BECOMES, "the URL of your database (FENCEROW_URL); no broker"),
    "result_backend": (BECOMES, "nothing: results lie with the jobs"),
    "result_expires": (BECOMES, "retention_s and the settings of retention"),
    "result_failure_expires": (
        BECOMES,
        "FENCEROW_RETENTION_FAILED_S: failures have a retention of their own",
    ),
    "task_acks_late": (BECOMES, "nothing: that is how it is"),
    "task_reject_on_worker_lost": (BECOMES, "nothing: that is how it is; crashes_max bounds it"),
    "task_retry_on_worker_lost": (BECOMES, "nothing: that is how it is; crashes_max bounds it"),
    **dict.fromkeys(
        ("task_acks_on_failure_or_timeout", "task_acks_on_failure", "task_acks_on_timeout"),
        OPTIONS["acks_on_failure"],
    ),
    "task_default_rate_limit": OPTIONS["rate_limit"],
    "task_default_priority": (PERSON, "App(defaults=Defaults(priority=...)); higher first"),
    "task_default_queue": (PERSON, "queue= where a job is declared; without it the queue is called default"),
    "task_routes": (PERSON, "queue= where the job is declared"),
    "task_queues": (BECOMES, "nothing: a queue is its name"),
    "task_time_limit": (BECOMES, "App(defaults=Defaults(timeout_s=...))"),
    "task_soft_time_limit": OPTIONS["soft_time_limit"],
    "task_annotations": (PERSON, "options where the job is declared; rates become limits"),
    "task_always_eager": (PERSON, "tests: drain() of the test kit runs jobs on a real database"),
    "task_create_missing_queues": (BECOMES, "nothing: a queue is its name"),
    "worker_prefetch_multiplier": (BECOMES, "nothing: a worker claims what its slots will need"),
    "worker_disable_prefetch": (BECOMES, "nothing: a worker claims what its slots will need"),
    "worker_eta_task_limit": (BECOMES, "nothing: what is delayed waits in the database, not in a worker"),
    "worker_concurrency": (BECOMES, "slots= of the worker"),
    "worker_max_tasks_per_child": (
        PERSON,
        "child processes have limits of memory; see the guide of processes",
    ),
    "worker_max_memory_per_child": (PERSON, "process=True with a limit of memory"),
    "beat_scheduler": (BECOMES, "nothing: every worker fires schedules, each fire once"),
    "timezone": (BECOMES, "tz= of each schedule"),
    "enable_utc": (BECOMES, "nothing: instants are kept in UTC"),
    "imports": (PERSON, "import the modules of your jobs where the app is named to the worker"),
    "include": (PERSON, "import the modules of your jobs where the app is named to the worker"),
}
# By which old names settings of Django's are known; without CELERY_ in front, in small letters.
OLD_SETTINGS = {
    "always_eager": "task_always_eager", "acks_late": "task_acks_late", "default_queue": "task_default_queue",
    "routes": "task_routes", "queues": "task_queues", "task_result_expires": "result_expires",
    "celeryd_prefetch_multiplier": "worker_prefetch_multiplier", "beat_schedule": "beat_schedule",
    "celerybeat_schedule": "beat_schedule", "celerybeat_scheduler": "beat_scheduler", "annotations": "task_annotations",
    "broker_transport_options": "broker_transport_options", "celeryd_concurrency": "worker_concurrency",
    "celeryd_task_time_limit": "task_time_limit", "celeryd_task_soft_time_limit": "task_soft_time_limit",
}  # fmt: skip
SELF: dict[str, Rule] = {
    "request": (BECOMES, "job.id, job.attempt, job.headers"),
    "update_state": (BECOMES, "job.progress(percent, note)"),
    "retry": (BECOMES, "raise Retry(after_s=...)"),
    "replace": (PERSON, "submit the other one in job.transaction(), or a flow with run_within"),
    "backend": (PERSON, "results lie with the jobs"),
    "app": (PERSON, "the module's own app"),
}
VISIBILITY_S = 3600
EARLY_ACK = (
    DANGER,
    "acknowledged before it runs (no acks_late): a worker that dies meanwhile loses it; a job here runs again",
)
FOREVER = (DANGER, "it retries for ever; attempts_max= has an end")
WAITS_INSIDE = (
    DANGER,
    "a task waits for another one's result: when all slots do, none is left for it; a flow, or run_within, holds none",
)
BEFORE_COMMIT = (
    DANGER,
    "sent before the commit: a worker may be too early, and after a rollback it runs still; using(connection=...)",
)
AFTER_COMMIT = (
    DANGER,
    "sent after the commit: a process that dies between loses it; submit in the transaction with using(connection=...)",
)
FAR = (
    DANGER,
    "later than an hour: with Redis it is delivered again after the visibility timeout; using(delay_s=...)",
)
PICKLE = (DANGER, "pickle: who can write to the broker can run code in your workers; arguments here are JSON")
