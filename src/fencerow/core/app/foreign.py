"""Verbs of other job systems, for who comes from one and writes them by habit: the error says what to write here.

No type checker sees these names. At run time they are missing attributes with a better message: `hasattr` says no.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fencerow.core.errors import DeclarationError, InvalidInput, UnknownVerb
from fencerow.core.model.misfit import HERS, NOTHING_HERE, ours_for

SUBMIT: Final = "write {it}.submit(...), or in async code await {it}.asubmit(...)"
LATER: Final = "write {it}.using(delay_s=...).submit(...), or using(run_at=...) for an instant"
OPTIONS: Final = (
    "write {it}.using(queue=..., delay_s=...).submit(...); using() takes every option of a submit"
)
CALL: Final = "write {it}.call(...), and pass such calls to submit_many"
HERE: Final = "call {it}(...) like the function that it is: that runs it here, without a database"
RETRY: Final = "raise Retry(after_s=...) in the handler, or any error that its rule retries"

# What a declared job is asked for by users of Celery, RQ, Dramatiq, Huey, arq, Procrastinate, TaskIQ, Sidekiq.
OF_JOBS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("delay", "adelay", "send", "asend", "enqueue", "aenqueue", "perform", "perform_async"), SUBMIT
    ),
    **dict.fromkeys(("defer", "defer_async", "kiq", "delay_on_commit", "enqueue_job"), SUBMIT),
    **dict.fromkeys(("enqueue_in", "enqueue_at", "perform_in", "perform_at", "schedule"), LATER),
    **dict.fromkeys(("apply_async", "aapply_async", "send_with_options", "configure", "kicker"), OPTIONS),
    **dict.fromkeys(("s", "si", "signature", "message"), CALL),
    **dict.fromkeys(("apply", "call_local"), HERE),
    "retry": RETRY,
}

SCHEDULED: Final = (
    "when a job is submitted again and again is said apart from it",
    "write app.schedule(job, cron=...)",
)
BY_TYPE: Final = (
    "the running job comes to the parameter of its type",
    "annotate the first parameter: `job: Job`",
)
OF_THE_APP: Final = (
    "payloads are sealed for all jobs of an app",
    "write App(seal=...), and let jobs that stay readable be those of another App on the same tables",
)
HOW_FAST: Final = (
    "how many run at once, and how fast, is said by a limit, for all processes together",
    'write limits="name" here, and App(limits=[Limit("name", at_once=..., rate=Rate(...))])',
)
# And what is no option here.
NO_OPTIONS_OF_OURS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("cron", "crontab", "periodic", "schedule", "every", "interval_s", "rate"), SCHEDULED),
    **dict.fromkeys(("bind", "pass_context", "context"), BY_TYPE),
    **dict.fromkeys(("seal", "sealed", "sign", "encrypt", "encrypted"), OF_THE_APP),
    **dict.fromkeys(
        ("concurrency", "max_concurrency", "rate_limit", "max_instances", "slots", "at_once"), HOW_FAST
    ),
    **NOTHING_HERE,
}


def option_meant(name: str, known: Iterable[str]) -> tuple[str, str] | None:
    """Why an option of another system is refused, and what to write; None if none of those that are known means it."""
    if name in NO_OPTIONS_OF_OURS:
        return NO_OPTIONS_OF_OURS[name]
    ours = ours_for(name, known)
    return None if ours is None else (HERS, f"write {ours}=")


DECLARE: Final = "write @{it}.job"
BY_NAME: Final = "write {it}.submit_by_name(name, arguments), or job.submit(...) where the job is declared"
SCHEDULE: Final = "write {it}.schedule(job, cron=...)"
WORK: Final = "write `fencerow worker -A module:{it}`, or in a program async with {it}.worker(): ..."
SLOTS: Final = (
    "write {it}.worker(slots=...), or `fencerow worker --slots N`: how many jobs one process runs at a time"
)
IMPORT: Final = (
    "declare jobs with one {it} in as many modules as you like, and import these modules beside it"
)
# And an app.
OF_APPS: Final[Mapping[str, str]] = {
    "task": DECLARE,
    **dict.fromkeys(("cron", "periodic", "periodic_task", "add_periodic_task", "every", "repeat"), SCHEDULE),
    **dict.fromkeys(("concurrency", "max_workers", "max_jobs"), SLOTS),
    **dict.fromkeys(("run", "run_worker", "start", "serve", "worker_main"), WORK),
    **dict.fromkeys(("include", "include_router", "autodiscover_tasks", "add_tasks_from"), IMPORT),
    **dict.fromkeys(("send_task", "enqueue", "enqueue_job", "configure_task"), BY_NAME),
}

HOW_MANY: Final = ("concurrency", "max_workers", "max_jobs", "threads", "workers", "worker_concurrency")
ROOM: Final = "how many jobs run at a time is said where a worker is made, each process for itself"
OVER_ALL: Final = (
    "that is said of a key or a limit, over all workers together; what one worker has room for are its slots"
)
# Options that are given to an app, and what to tell: why there is none, and what to write.
OF_AN_APP: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        (*HOW_MANY, "slots"),
        (ROOM, "write app.worker(slots=...), `fencerow worker --slots N`, or set FENCEROW_SLOTS"),
    ),
    "at_once": (
        "how many jobs run at once, over all workers, is said by a limit",
        'write App(limits=[Limit("name", at_once=...)])',
    ),
    **dict.fromkeys(
        (
            "broker",
            "broker_url",
            "backend",
            "result_backend",
            "redis_settings",
            "connection",
            "connector",
            "dsn",
        ),
        ("jobs and results lie in the one database of the app", "write App(url)"),
    ),
    **dict.fromkeys(
        ("include", "imports", "import_paths"), ("an app imports nothing", IMPORT.format(it="app"))
    ),
    **dict.fromkeys(
        ("timezone", "tz"), ("each schedule has its own zone", "write app.schedule(job, cron=..., tz=...)")
    ),
    **dict.fromkeys(
        ("beat_schedule", "cron_jobs", "schedules"),
        ("schedules are declared one by one", SCHEDULE.format(it="app")),
    ),
}
# And to a worker.
OF_A_WORKER: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(HOW_MANY, (HERS, "write slots=, or queues={name: slots}")),
    "at_once": (OVER_ALL, "write slots=, or queues={name: slots}"),
    "queue": ("it takes one or more", "write queues=[...]"),
    **dict.fromkeys(("hostname", "worker_name"), (HERS, "write name=")),
    **dict.fromkeys(
        ("burst", "drain"), (HERS, "write run(until_idle=True), or run_blocking(until_idle=True)")
    ),
    **dict.fromkeys(
        ("processes", "num_workers"), ("a worker is one process", "write `fencerow worker --processes N`")
    ),
}


def refuse_unknown(
    given: Mapping[str, object],
    of: Callable[..., Any],
    who: str,
    meant: Mapping[str, tuple[str, str]],
    kind: type[DeclarationError] | type[InvalidInput],
) -> None:
    """Refuse options that a function of ours does not have, with what is to be written instead.

    Raises:
        DeclarationError, InvalidInput: there is one.
    """
    if not given:
        return
    name = next(iter(given))
    known = [each for each in inspect.signature(of).parameters if each not in ("self", "unknown")]
    found = f"{who} was given the option {ascii(name)[:60]}"
    nearest = next(iter(difflib.get_close_matches(name, (*known, *meant), n=1, cutoff=0.8)), name)
    if nearest in meant:  # another system's word, perhaps misspelt
        raise kind(found, *meant[nearest])
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    why = f"did you mean {' or '.join(close)}?" if close else f"it takes {', '.join(known)}"
    raise kind(found, why, "correct or remove it")


def no_attribute(owner: object, it: str, name: str, verbs: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that is not there; `it` is how a program calls the owner."""
    instead = verbs.get(name)
    if instead is None:
        return AttributeError(
            f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner
        )
    return UnknownVerb(f"{it} has no {name!r}", HERS, instead.replace("{it}", it))
