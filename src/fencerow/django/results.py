"""Django's `TaskResult` of a job: what its row and its timeline say, in Django's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from traceback import format_exception
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from fencerow.app import App
from fencerow.core.client.refs import reading
from fencerow.core.model.job import Happening, JobRecord, instant
from fencerow.core.model.packed import PACKED
from fencerow.core.model.state import State
from fencerow.db.run import Procedure, ask
from fencerow.django.interface import (
    Task,
    TaskError,
    TaskException,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from fencerow.job import Job
from fencerow.operators.job_verbs import timeline_of

STATUS = {
    State.WAITING: TaskResultStatus.READY,
    State.QUEUED: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,  # Django has no word for it; its last error says so
}
CANCELLED = "fencerow.errors.JobCancelled"


@dataclass(frozen=True, slots=True)
class Story:
    """A job with all that happened to it."""

    job: JobRecord
    happenings: Sequence[Happening]

    @property
    def claims(self) -> list[Happening]:
        """Each attempt, by when and by whom it was claimed."""
        return [each for each in self.happenings if each.kind == "claimed"]

    @property
    def errors(self) -> list[Any]:
        """The error of each attempt that had one; of a cancelled job, as the last one, that it was cancelled."""
        found = [made for each in self.happenings if (made := _error_of(each)) is not None]
        if self.job.state is State.CANCELLED:
            found.append(
                TaskError(exception_class_path=CANCELLED, traceback=f"{CANCELLED}: {_reason(self)}\n")
            )
        return found


def reading_story(job_id: str) -> Procedure[Story]:
    """The job of this id, with its story.

    Raises:
        InvalidInput: it is no id. JobNotFound: it is not there.
    """
    from fencerow.operators import looking

    job = yield from reading(job_id)
    return Story(job, timeline_of(job, (yield from ask(looking.events(job.id)))))


def found_result(app: App, job_id: str, alias: str, connection: Any) -> Any:
    """The result of the task that is stored under this id.

    Raises:
        InvalidInput, JobNotFound: see `reading_story`. TaskResultDoesNotExist: it is the job of no task.
    """
    story = app.client.run(reading_story(job_id), connection)
    job = story.job
    task = _task_of(job, alias)
    stored = _opened_arguments(app, job)
    result = _result(task, job.id, alias, stored.get("args", []), stored.get("kwargs", {}), story)
    if job.state is State.SUCCEEDED:
        object.__setattr__(result, "_return_value", _opened_result(app, job))
    return result


def running_result(task: Any, job: Job, args: list[Any], kwargs: dict[str, Any], before: Story | None) -> Any:
    """The result as a task sees it while it runs. `before`: its story, if this is not its first attempt."""
    result = _result(task, job.id, task.backend, args, kwargs, before)
    if before is None:
        now = _shown(datetime.now(UTC))
        for name, value in (("started_at", now), ("last_attempted_at", now)):
            object.__setattr__(result, name, value)
        result.worker_ids.append(job.holder)
    object.__setattr__(result, "status", TaskResultStatus.RUNNING)
    return result


def earlier(job: Job) -> Story:
    """What happened to the job before and until its present attempt."""
    from fencerow.django.project import project_app

    return project_app().client.run(reading_story(job.id))


def ended(result: Any, status: Any, error: BaseException | None = None, value: Any = None) -> None:
    """Say in a running task's result how it ended."""
    if error is not None:
        kind = type(error)
        path = f"{kind.__module__}.{kind.__qualname__}"
        result.errors.append(TaskError(exception_class_path=path, traceback="".join(format_exception(error))))
    for name, said in (
        ("status", status),
        ("finished_at", _shown(datetime.now(UTC))),
        ("_return_value", value),
    ):
        object.__setattr__(result, name, said)


def enqueued_at(job_id: str) -> datetime | None:
    """When the id was made, which is when the task was enqueued: the beginning of a UUIDv7 is the time."""
    made = UUID(job_id)
    return _shown(datetime.fromtimestamp((made.int >> 80) / 1000, UTC)) if made.version == 7 else None


def _result(
    task: Any, job_id: str, alias: str, args: list[Any], kwargs: dict[str, Any], story: Story | None
) -> Any:
    claims = [] if story is None else story.claims
    return TaskResult(
        task=task,
        id=job_id,
        status=TaskResultStatus.READY if story is None else STATUS[story.job.state],
        enqueued_at=enqueued_at(job_id) or (story and _at(story.job.submitted_at_us)),
        started_at=_at(claims[0].at_us) if claims else None,
        finished_at=None if story is None else _at(story.job.ended_at_us),
        last_attempted_at=_at(claims[-1].at_us) if claims else None,
        args=args,
        kwargs=kwargs,
        backend=alias,
        errors=[] if story is None else story.errors,
        worker_ids=[each.actor or "" for each in claims],
    )


def _task_of(job: JobRecord, alias: str) -> Any:
    """The task as it was enqueued.

    Raises:
        TaskResultDoesNotExist: no such task can be imported here.
    """
    try:
        task = import_string(job.name)
    except ImportError as error:
        raise TaskResultDoesNotExist(f"{job.id}: there is no task {job.name} here") from error
    if not isinstance(task, Task):
        raise TaskResultDoesNotExist(f"{job.id}: {job.name} is no task")
    after = (job.metadata or {}).get("run_after")
    run_after = datetime.fromisoformat(after) if isinstance(after, str) else None
    try:
        return task.using(priority=job.priority, queue_name=job.queue, run_after=run_after, backend=alias)
    except TaskException:
        return task  # somebody has moved the job to a queue that TASKS does not name


def _error_of(happening: Happening) -> Any:
    """The error that ended an attempt, if one did."""
    detail = happening.detail if isinstance(happening.detail, dict) else {}
    error = detail.get("error") or detail.get("detail")
    if not isinstance(error, dict) or not isinstance(error.get("type"), str):
        return None
    path = error["type"] if "." in error["type"] else f"builtins.{error['type']}"
    return TaskError(exception_class_path=path, traceback=str(error.get("traceback", "")))


def _reason(story: Story) -> str:
    last = story.happenings[-1].detail if story.happenings else None
    reason = last.get("reason") if isinstance(last, dict) else None
    return str(reason or "it was cancelled")


def _opened_arguments(app: App, job: JobRecord) -> dict[str, Any]:
    args = job.args
    known = app.jobs.get(job.name)
    if app.client.packs and known is not None and isinstance(args, dict):
        raw = msgspec.json.encode(args)
        if raw.startswith(PACKED):
            version = known.handler.arguments.version
            args = msgspec.json.decode(known.handler.plain_arguments(job.id, raw, version))
    return args if isinstance(args, dict) else {}


def _opened_result(app: App, job: JobRecord) -> Any:
    if not app.client.packs:
        return job.result
    return msgspec.json.decode(app.client.plain_result(job.id, msgspec.json.encode(job.result)))


def _at(us: int | None) -> datetime | None:
    moment = instant(us)
    return None if moment is None else _shown(moment)


def _shown(moment: datetime) -> datetime:
    """As Django has datetimes: without a zone if USE_TZ is off."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)
