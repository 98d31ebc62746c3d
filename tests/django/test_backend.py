"""Django's tasks on Fencerow: in the transaction, with results, errors, attempts, workers, signals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from fencerow.django.following import DjangoApp
from fencerow.errors import MissingExtra
from fencerow.testing import Clock, drain, submitted

try:
    from fencerow.django.interface import (
        TaskResultDoesNotExist,
        TaskResultStatus,
        task_enqueued,
        task_finished,
        task_started,
    )
    from tests.django import tasks
except MissingExtra:
    pytest.skip("this Django has no tasks, and django-tasks is not installed", allow_module_level=True)

from fencerow.django.declaring import declare_all


class Undone(Exception):
    """Ends a block."""


@pytest.fixture
def worker(app: DjangoApp) -> DjangoApp:
    """The app as a worker has it: with all tasks."""
    declare_all(app)
    return app


@pytest.fixture
def heard() -> Iterator[list[tuple[str, Any]]]:
    """Django's signals of tasks, in their order."""
    found: list[tuple[str, Any]] = []
    signals = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    receivers = []
    for name, signal in signals.items():

        def receive(task_result: Any, name: str = name, **_: Any) -> None:
            found.append((name, task_result.status))

        signal.connect(receive)
        receivers.append((signal, receive))
    yield found
    for signal, receive in receivers:
        signal.disconnect(receive)


def test_a_task_is_enqueued_if_and_only_if_the_block_commits(alias: str, worker: DjangoApp) -> None:
    with transaction.atomic(using=alias):
        kept = tasks.add.enqueue(1, b=2)
        assert tasks.add.get_result(kept.id) == kept  # the block sees what it did
        assert submitted(worker) == []
    with pytest.raises(Undone), transaction.atomic(using=alias):
        lost = tasks.add.enqueue(3)
        raise Undone

    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(lost.id)
    assert [attempt.result for attempt in drain(worker)] == [3]
    kept.refresh()
    assert (kept.status, kept.return_value, kept.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 1)
    assert kept.enqueued_at <= kept.started_at == kept.last_attempted_at <= kept.finished_at


async def test_outside_a_block_it_is_stored_at_once_from_async_code_too(
    sqlite_alias: str, app: DjangoApp
) -> None:
    result = await tasks.greet.aenqueue("ann")

    found = await app.client.aget(result.id)
    assert (found.name, found.queue, found.priority) == ("tests.django.tasks.greet", "mail", 7)
    assert await tasks.greet.aget_result(result.id) == result


def test_a_task_that_fails_has_its_errors_and_workers(sqlite_alias: str, worker: DjangoApp) -> None:
    tasks.noted.clear()
    result = tasks.flaky.enqueue(1)
    drain(worker)
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 1)
    Clock(worker).advance(hours=1)
    drain(worker)
    result.refresh()

    assert tasks.noted == [(1, 0, TaskResultStatus.RUNNING), (2, 1, TaskResultStatus.RUNNING)]
    assert (result.return_value, result.attempts, len(set(result.worker_ids))) == (2, 2, 2)
    (error,) = result.errors
    assert error.exception_class is ConnectionError and error.traceback.endswith(
        "ConnectionError: attempt 1\n"
    )
    assert "fencerow/django" not in error.traceback


@pytest.mark.parametrize(
    ("task", "kind", "said"),
    [(tasks.broken, ValueError, "this is broken"), (tasks.unkeepable, TypeError, "Unsupported type")],
)
def test_a_task_is_tried_once(sqlite_alias: str, worker: DjangoApp, task: Any, kind: Any, said: str) -> None:
    result = task.enqueue()
    drain(worker)
    result.refresh()

    assert (result.status, result.attempts, result.errors[0].exception_class) == (
        TaskResultStatus.FAILED,
        1,
        kind,
    )
    assert said in result.errors[0].traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_it_waits_for_run_after(sqlite_alias: str, worker: DjangoApp) -> None:
    later = timezone.now() + timedelta(hours=2)
    result = tasks.add.using(run_after=later, priority=3).enqueue(1)

    assert drain(worker) == []
    assert tasks.add.get_result(result.id) == result and result.task.run_after == later
    Clock(worker).advance(hours=3)
    assert [attempt.result for attempt in drain(worker)] == [1]


def test_the_signals_tell_each_task_once(
    sqlite_alias: str, worker: DjangoApp, heard: list[tuple[str, Any]]
) -> None:
    tasks.flaky.enqueue(1)
    drain(worker)
    Clock(worker).advance(hours=1)
    drain(worker)

    assert [name for name, _ in heard] == ["enqueued", "started", "started", "finished"]
    assert heard[-1][1] is TaskResultStatus.SUCCESSFUL


def test_a_cancelled_task_has_failed_and_says_why(sqlite_alias: str, worker: DjangoApp) -> None:
    result = tasks.add.enqueue(1)
    worker.client.cancel(result.id, reason="nobody wants it")
    result.refresh()

    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 0)
    assert result.errors[-1].traceback.endswith("nobody wants it\n")


@pytest.mark.parametrize("unknown", ["123", 123, "01a22840-077f-7372-ae6a-20c1e6bc8f39"])
def test_a_result_that_is_not_there(sqlite_alias: str, app: DjangoApp, unknown: Any) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_backend().get_result(unknown)


def test_the_job_of_no_task_has_no_result(sqlite_alias: str, app: DjangoApp) -> None:
    @app.job
    def other() -> None:
        """No task."""

    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_backend().get_result(other.submit().id)


@pytest.mark.parametrize("options", [{"priority": 3}, {"attemps_max": 3}, {"attempts_max": 0}])
def test_options_that_cannot_be_used_are_told_by_the_check(
    sqlite_alias: str, options: dict[str, Any]
) -> None:
    told = {"default": {"BACKEND": "fencerow.django.backend.FencerowBackend", "OPTIONS": options}}
    with override_settings(TASKS=told):
        found = tasks.add.get_backend().check()

    assert [each.id for each in found] == ["fencerow.E008"]


def test_a_right_entry_of_tasks_has_nothing_to_tell(sqlite_alias: str) -> None:
    assert tasks.add.get_backend().check() == []
