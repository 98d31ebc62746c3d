"""A call that does not fit: what was found, what was expected, and our word for what another system calls so."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from fencerow.core.errors import WrongCall
from fencerow.core.model.signature import name_of

# What options of other systems are called here: of these the one that is called has.
OPTIONS_OF_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("countdown", "defer_by", "schedule_in"), ("delay_s", "after_s")),
    **dict.fromkeys(("eta", "defer_until", "schedule_at", "scheduled_at"), ("run_at",)),
    **dict.fromkeys(("expires", "max_age"), ("expires_s",)),
    **dict.fromkeys(("ttl",), ("expires_s", "retention_s")),
    **dict.fromkeys(("time_limit", "soft_time_limit", "job_timeout"), ("timeout_s",)),
    **dict.fromkeys(("max_retries", "retries", "max_attempts", "max_tries"), ("attempts_max",)),
    **dict.fromkeys(("autoretry_for", "retry_for", "retry_when"), ("retry_on",)),
    **dict.fromkeys(("dont_autoretry_for", "throws"), ("fail_on",)),
    **dict.fromkeys(
        ("retry_backoff", "default_retry_delay", "min_backoff", "retry_delay"), ("backoff", "base_s")
    ),
    **dict.fromkeys(("retry_backoff_max", "max_backoff"), ("cap_s",)),
    **dict.fromkeys(("retry_jitter",), ("jitter",)),
    **dict.fromkeys(("task_id", "job_id", "uid"), ("key", "id")),  # theirs may be any text, ours is a UUID
    **dict.fromkeys(("queue_name", "routing_key"), ("queue",)),
    **dict.fromkeys(("result_ttl", "failure_ttl", "result_expires", "keep_result"), ("retention_s",)),
    **dict.fromkeys(("queueing_lock",), ("unique",)),
    **dict.fromkeys(("idempotency_key",), ("key",)),
    **dict.fromkeys(("at_front",), ("priority",)),
    **dict.fromkeys(("meta",), ("metadata",)),
    **dict.fromkeys(("lock", "concurrency_key"), ("exclusive",)),
    **dict.fromkeys(
        ("concurrency", "max_concurrency", "max_workers", "max_jobs", "worker_concurrency", "threads"),
        ("slots", "at_once"),
    ),
    **dict.fromkeys(("broker", "broker_url", "dsn", "redis_url", "database_url"), ("url",)),
    **dict.fromkeys(("status", "statuses"), ("states", "state")),
    **dict.fromkeys(("task", "task_name", "job_name"), ("job", "name")),
}
# And what nothing here is called.
NOTHING_HERE: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        ("acks_late", "ack_late", "reject_on_worker_lost"),
        ("a job is always acknowledged after its handler has returned", "leave it out"),
    ),
    **dict.fromkeys(
        ("prefetch", "prefetch_count", "prefetch_multiplier", "worker_prefetch_multiplier"),
        ("a worker claims ahead what its slots will need", "leave it out"),
    ),
}
HERS: Final = "that is another system's word for it"


def ours_for(name: str, known: Iterable[str]) -> str | None:
    """What an option of another system is called here; None if it means none of those that are known."""
    return next((ours for ours in OPTIONS_OF_OTHERS.get(name, ()) if ours in known), None)


def misfit(
    called: Callable[..., Any], who: str, given: Sequence[object], named: Mapping[str, object]
) -> WrongCall:
    """The error for arguments with which this cannot be called; `given` begins with the object, if it is a method."""
    parameters = inspect.signature(called).parameters
    plain = [each for each in parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    by_place = [each.name for each in plain if each.kind is not each.KEYWORD_ONLY]
    by_name = [each.name for each in plain if each.kind is not each.POSITIONAL_ONLY and each.name != "self"]
    for name in named:
        if name not in by_name:
            return WrongCall(f"{who} was given {ascii(name)[:60]}", *_meant(name, by_name))
        if name in by_place[: len(given)]:
            return WrongCall(
                f"{who} was given {name} twice", "once by its place, once by its name", f"pass {name} once"
            )
    if len(given) > len(by_place):
        apart = [each for each in by_name if each not in by_place]
        return WrongCall(
            f"{who} was given {len(given) - by_place.count('self')} arguments without a name",
            f"without names it takes {', '.join(_but_self(by_place)) or 'none'}",
            f"pass {', '.join(apart)} by name" if apart else "leave out the others",
        )
    lacking = [
        each.name
        for each in plain
        if each.default is each.empty and each.name not in named and each.name not in by_place[: len(given)]
    ]
    return WrongCall(
        f"{who} was not given {', '.join(lacking)}", f"it takes {', '.join(by_name)}", "pass what is missing"
    )


def name_of_call(called: Callable[..., Any], given: Sequence[object]) -> str:
    """How a program calls it: `Retry()` for the `__init__` of a new one, `list_jobs()` for a verb."""
    name = name_of(called).rpartition(".")[2]
    return f"{type(given[0]).__name__ if name == '__init__' else name}()"


def _meant(name: str, known: Sequence[str]) -> tuple[str, str]:
    if name in NOTHING_HERE:
        return NOTHING_HERE[name]
    if ours := ours_for(name, known):
        return HERS, f"write {ours}="
    if close := difflib.get_close_matches(name, known, n=2, cutoff=0.6):
        return f"did you mean {' or '.join(close)}?", "correct or remove it"
    if not known:
        return "it takes nothing", "remove it"
    return f"it takes {', '.join(known)}", "correct or remove it"


def _but_self(names: Sequence[str]) -> list[str]:
    return [each for each in names if each != "self"]
