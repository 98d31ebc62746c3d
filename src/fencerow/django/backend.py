"""`FencerowBackend`: Django's tasks as jobs, stored in the transaction in which they are enqueued.

    TASKS = {"default": {"BACKEND": "fencerow.django.backend.FencerowBackend"}}

A task is a job of its own name, the path of its function, so that all that is known of jobs is known of tasks: who runs
which, why one waits, how often one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.core import checks
from django.db import connections, transaction

from fencerow.app import App
from fencerow.core.store.hints import hints_of
from fencerow.django.declaring import TaskOptions, declare, declared_job
from fencerow.django.interface import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
)
from fencerow.django.project import project_app
from fencerow.django.results import enqueued_at, found_result
from fencerow.django.tables import alias_of_jobs
from fencerow.errors import FencerowError, InvalidInput, JobNotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class FencerowTask(Task):
    """A task; `options` are those of `app.job` for this task alone, such as `{"attempts_max": 5}`."""

    options: Mapping[str, Any] | None = field(default=None, hash=False)


class FencerowBackend(BaseTaskBackend):
    """Stores tasks as jobs in the database of FENCEROW["DATABASE"], on Django's own connection.

    Inside `atomic()` a task is enqueued if, and only if, the block commits; outside, it is stored at once. OPTIONS are
    those of `app.job` for all tasks of this backend. A task is tried once unless `attempts_max` says otherwise.
    """

    task_class = FencerowTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        self._options = TaskOptions.of(self.options)

    def validate_task(self, task: Any) -> None:
        """Django calls it for each task that is declared, so a worker knows all those whose modules are imported."""
        super().validate_task(task)
        declare(task, self._options)

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Store the task, in the transaction that is open on Django's connection, or else at once.

        Raises:
            InvalidTask: it cannot be run by this backend.
            TypeError, ValueError: an argument is no JSON data. InvalidInput: it cannot be kept faithfully.
            Unavailable, Busy, StorageFull: nothing is stored. RetryTransaction: run the whole block again.
        """
        self.validate_task(task)
        args, kwargs = normalize_json(list(args)), normalize_json(dict(kwargs))
        app, alias = project_app(), alias_of_jobs()
        _follow(app)
        connection = connections[alias]
        call = (
            declared_job(app, task)
            .using(
                queue=task.queue_name,
                priority=int(task.priority),
                run_at=_aware(task.run_after),
                metadata=_kept(task),
                connection=connection,
            )
            .call(args=args, kwargs=kwargs)
        )
        block: Any = nullcontext() if connection.in_atomic_block else transaction.atomic(using=alias)
        with block:
            handle = app.submit(call)
            hints = hints_of([app.as_stored(call)])
            transaction.on_commit(partial(_wake, app, hints), using=alias, robust=True)
        result = TaskResult(
            task=task,
            id=handle.id,
            status=TaskResultStatus.READY,
            enqueued_at=enqueued_at(handle.id),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: Any) -> Any:
        """The task of this id as it stands, read on Django's connection: inside `atomic()` it sees what the block did.

        Raises:
            TaskResultDoesNotExist: there is no such job, it was removed by retention, or it is none of a task that can
                be imported here.
        """
        app = project_app()
        _follow(app)
        try:
            return found_result(app, str(result_id), self.alias, connections[alias_of_jobs()])
        except (InvalidInput, JobNotFound) as error:
            raise TaskResultDoesNotExist(result_id) from error

    def check(self, **_: Any) -> list[checks.CheckMessage]:
        """What is wrong with this entry of TASKS."""
        from django.apps import apps

        found: list[checks.CheckMessage] = []
        if not apps.is_installed("fencerow.django"):
            found.append(
                checks.Error(
                    f"TASKS[{self.alias!r}] is Fencerow's, and INSTALLED_APPS has no 'fencerow.django'.",
                    hint="Add it, and run `manage.py migrate`.",
                    id="fencerow.E007",
                )
            )
        try:
            self._options.check()
        except FencerowError as error:
            found.append(
                checks.Error(
                    f"TASKS[{self.alias!r}]: {error.what}: {error.why}.", hint=error.fix, id="fencerow.E008"
                )
            )
        return found


def _follow(app: App) -> None:
    """Django's test runner may have given the database another name since."""
    follow: Callable[[], None] | None = getattr(app, "follow", None)
    if follow is not None:
        follow()


def _wake(app: App, hints: list[str]) -> None:
    app.engine.wake(hints)


def _aware(moment: Any) -> Any:
    """With USE_TZ = False Django's datetimes are naive, in the zone of its settings."""
    from django.utils import timezone

    return timezone.make_aware(moment) if moment is not None and timezone.is_naive(moment) else moment


def _kept(task: Any) -> dict[str, Any] | None:
    """What a result says of the task beside the columns of its job."""
    return None if task.run_after is None else {"run_after": task.run_after.isoformat()}
