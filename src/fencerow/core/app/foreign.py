"""Verbs of other job systems, for who comes from one and writes them by habit: the error says what to write here.

No type checker sees these names. At run time they are missing attributes with a better message: `hasattr` says no.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fencerow.core.errors import UnknownVerb

HERS: Final = "that is another system's word for it"
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


def no_attribute(owner: object, it: str, name: str, verbs: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that is not there; `it` is how a program calls the owner."""
    instead = verbs.get(name)
    if instead is None:
        return AttributeError(
            f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner
        )
    return UnknownVerb(f"{it} has no {name!r}", HERS, instead.replace("{it}", it))
