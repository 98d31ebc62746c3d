"""How a worker runs a Django task: with fresh connections, Django's signals, and a context if the task takes one.

A plain task runs in a thread of the worker, an async one on its event loop. Django's connections belong to threads;
old ones are closed before and after each task, as Django does it around requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, reset_queries

from fencerow.core.model.outcome import Failed
from fencerow.core.model.retry import RetryRule, after_failure
from fencerow.django.interface import (
    TaskContext,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from fencerow.django.results import earlier, ended, running_result
from fencerow.errors import CancelRequested
from fencerow.job import Job

SNOOZES_MAX = 48
_current: ContextVar[Job | None] = ContextVar("fencerow_django_job", default=None)


def current_job() -> Job | None:
    """The job as which the calling task runs: for `progress`, `log`, `cancelled`, `id`. None elsewhere."""
    return _current.get()


def handler_of_task(task: Any) -> Callable[..., Any]:
    """What a worker calls for a task."""

    async def run_async(job: Job, args: list[Any], kwargs: dict[str, Any]) -> Any:
        await sync_to_async(_fresh)()
        before = await sync_to_async(earlier)(job) if job.attempt > 1 else None
        try:
            with Run(task, job).told(args, kwargs, before) as run:
                return run.returned(await task.func(*run.context, *args, **kwargs))
        finally:
            await sync_to_async(close_old_connections)()

    def run(job: Job, args: list[Any], kwargs: dict[str, Any]) -> Any:
        _fresh()
        try:
            with Run(task, job).told(args, kwargs, earlier(job) if job.attempt > 1 else None) as run:
                return run.returned(task.func(*run.context, *args, **kwargs))
        finally:
            close_old_connections()

    return run_async if iscoroutinefunction(task.func) else run


@dataclass
class Run:
    """One attempt of a task, and what Django's signals tell of it."""

    task: Any
    job: Job
    context: tuple[Any, ...] = ()
    result: Any = None

    @contextmanager
    def told(self, args: list[Any], kwargs: dict[str, Any], before: Any) -> Iterator[Run]:
        """Around the call: `task_started` before it, `task_finished` when this attempt ends the task."""
        self.result = running_result(self.task, self.job, args, kwargs, before)
        if self.task.takes_context:
            self.context = (TaskContext(task_result=self.result),)
        sender = type(self.task.get_backend())
        task_started.send(sender=sender, task_result=self.result)
        token = _current.set(self.job)
        try:
            yield self
        except BaseException as error:
            if _is_last(self.job, error):
                ended(self.result, TaskResultStatus.FAILED, error)
                task_finished.send(sender=sender, task_result=self.result)
            raise
        finally:
            _current.reset(token)
        task_finished.send(sender=sender, task_result=self.result)

    def returned(self, value: Any) -> Any:
        """What the task returned, as JSON data.

        Raises:
            TypeError: it is none.
        """
        plain = normalize_json(value)
        ended(self.result, TaskResultStatus.SUCCESSFUL, value=plain)
        return plain


def _fresh() -> None:
    reset_queries()
    close_old_connections()


def _is_last(job: Job, error: BaseException) -> bool:
    """Whether the task has failed for good. One that was told to stop is cancelled, or released for another worker."""
    if isinstance(error, CancelRequested) or not isinstance(error, Exception | SystemExit):
        return False
    rule = _rule_of(job)
    outcome = after_failure(
        rule,
        error,
        job.failures,
        job.attempts_max,
        job.snoozes,
        SNOOZES_MAX,
        random.random,
        datetime.now(UTC),
    )
    return isinstance(outcome, Failed)


def _rule_of(job: Job) -> RetryRule:
    from fencerow.django.project import project_app

    return project_app().jobs[job.name].handler.rule
